// A simulated internet: a network namespace behind the host, with public, private and link-local addresses. The same servers answer on
// all of them, HTTP over TCP and an echo over UDP, so only the firewall decides which of them a sandbox can reach.
//
// Several may exist at once, beside the machine's other connections. So the host gets routes to single addresses only, and none of them
// belongs to a network of the machine. The host's own address and the public ones are reserved in the ranges for documentation, which
// nobody should use. Instances may share closed addresses, with routes of different metrics: each route leads to the same kind of server.

import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { isIPv6 } from "node:net";
import { runCommand } from "@skerry/base";
import { waitUntil } from "@skerry/testkit/wait-until";
import { isOfMachine, reserveAddresses } from "./reserve-addresses.ts";

/** One address of each private range, and the one at which cloud providers tell machines their secrets. */
export const CLOSED_ADDRESSES: readonly string[] = [
  ...["192.168", "172.20", "100.64", "10.255", "198.18"].map(foreignAddressIn),
  "169.254.169.254",
];
/** The same of IPv6: a cloud provider's metadata, a private network, and addresses that lead to others of IPv4. */
export const CLOSED_IPV6: readonly string[] = ["fd00:ec2::254", "fc00:77::10", "64:ff9b::c633:6401", "2002:c633:6401::10", "2001:0:77::10"];
/** For documentation only (RFC 5737), and public for a firewall. */
const PUBLIC_RANGES = ["198.51.100", "203.0.113", "192.0.2"];
const CANDIDATES = PUBLIC_RANGES.flatMap((range, index) => {
  const other = PUBLIC_RANGES[(index + 1) % PUBLIC_RANGES.length];
  return Array.from({ length: 60 }, (_, at) => ({
    namespace: `inet-${index}-${at}`,
    device: `inet${index}-${at}`,
    addresses: [`${range}.${4 * at + 2}`, `${range}.${4 * at + 3}`, `${other}.${4 * at + 4}`] as const,
    // Also for documentation (RFC 3849).
    ipv6: [`2001:db8:${index + 1}:${at + 1}::1`, `2001:db8:${index + 1}:${at + 1}::2`, `2001:db8:${index + 1}:${at + 1}:1::3`] as const,
  }));
});
export const INTERNET_PORT = 8099;

export interface TestInternet extends AsyncDisposable {
  readonly namespace: string;
  /** The address that sandboxes may reach. */
  readonly publicAddress: string;
  /** Another one, of another prefix. */
  readonly otherPublicAddress: string;
  /** The host's own address on that network. */
  readonly hostAddress: string;
  /** The same of IPv6. */
  readonly ipv6: { readonly publicAddress: string; readonly otherPublicAddress: string; readonly hostAddress: string };
}

export async function startInternet(): Promise<TestInternet> {
  const metric = randomInt(1, 1_000_000_000);
  const { namespace, device, addresses: reserved, ipv6: ofIpv6 } = await reserveAddresses(CANDIDATES);
  const [hostAddress, publicAddress, otherPublicAddress] = reserved;
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => {
    await runCommand("ip", ["netns", "del", namespace]);
  });
  const addresses = [publicAddress, otherPublicAddress, ...CLOSED_ADDRESSES];
  const [hostIpv6, publicIpv6, otherPublicIpv6] = ofIpv6;
  const ipv6 = [publicIpv6, otherPublicIpv6, ...CLOSED_IPV6];
  const lines = [
    `link add ${device} type veth peer name eth0 netns ${namespace}`,
    `addr add ${hostAddress}/32 dev ${device}`,
    `link set ${device} up`,
    ...addresses.map((address) => `route add ${address}/32 dev ${device} metric ${metric}`),
    `addr add ${hostIpv6}/128 dev ${device} nodad`,
    ...ipv6.map((address) => `route add ${address}/128 dev ${device} metric ${metric}`),
  ];
  await runCommand("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` });
  const inside = [
    "link set lo up",
    "link set eth0 up",
    ...addresses.map((address) => `addr add ${address}/32 dev eth0`),
    `route add ${hostAddress}/32 dev eth0`,
    `route add default via ${hostAddress}`,
    ...ipv6.map((address) => `addr add ${address}/128 dev eth0 nodad`),
    `route add ${hostIpv6}/128 dev eth0`,
    `route add default via ${hostIpv6}`,
  ];
  await runCommand("ip", ["-n", namespace, "-batch", "-"], { input: `${inside.join("\n")}\n` });
  const program = `ADDRESSES = ${JSON.stringify([...addresses, ...ipv6])}\n${SERVER}`;
  // `ip netns exec` would hold copies of all mounts of this host.
  const server = spawn("nsenter", [`--net=/run/netns/${namespace}`, "python3", "-c", program], { stdio: "ignore" });
  stack.defer(() => void server.kill("SIGKILL"));
  // Check first that all addresses answer the host. So an address that a sandbox cannot reach is blocked and not missing.
  for (const address of [...addresses, ...ipv6]) await waitUntil(`${address} answers on the host`, () => answers(address));
  const whole = stack.move();
  const own = { publicAddress: publicIpv6, otherPublicAddress: otherPublicIpv6, hostAddress: hostIpv6 };
  return { namespace, publicAddress, otherPublicAddress, hostAddress, ipv6: own, [Symbol.asyncDispose]: () => whole.disposeAsync() };
}

function foreignAddressIn(range: string): string {
  const found = Array.from({ length: 100 }, (_, third) => `${range}.${77 + third}.10`).find((address) => !isOfMachine(address));
  if (found === undefined) throw new Error(`the machine's own networks take all of ${range}.0.0`);
  return found;
}

async function answers(address: string): Promise<boolean> {
  try {
    return (await fetch(`http://${isIPv6(address) ? `[${address}]` : address}:${INTERNET_PORT}/`, { signal: AbortSignal.timeout(5_000) }))
      .ok;
  } catch {
    return false;
  }
}

const SERVER = `
import socket, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class H(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.client_address[0].removeprefix("::ffff:").encode())
    def log_message(self, *a): pass
def echo(address):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM); s.bind((address, ${INTERNET_PORT}))
    while True:
        data, peer = s.recvfrom(2048); s.sendto(data, peer)
# Each address has a socket of its own, so that an answer comes from the address that was asked.
for address in ADDRESSES: threading.Thread(target=echo, args=(address,), daemon=True).start()
class Server(ThreadingHTTPServer): address_family = socket.AF_INET6
Server(("::", ${INTERNET_PORT}), H).serve_forever()
`;
