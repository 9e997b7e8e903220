// A simulated internet: a network namespace behind the host, with public, private and link-local addresses. The same servers answer on
// all of them, HTTP over TCP and an echo over UDP, so only the firewall decides which of them a sandbox can reach.
//
// Several may exist at once, beside the machine's other connections. So the host gets routes to single addresses only. The host's own
// address and the public ones are drawn at random from TEST-NET-2 and TEST-NET-3, ranges that nobody uses. All instances share the closed addresses,
// with routes of different metrics: each route leads to the same kind of server.

import { spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { runCommand } from "@skerry/base";
import { waitUntil } from "@skerry/testkit/wait-until";

export const CLOSED_ADDRESSES = [
  "192.168.77.10",
  "172.20.77.10",
  "100.64.77.10",
  "10.255.77.10",
  "169.254.169.254",
  "198.18.77.10",
] as const;
export const INTERNET_PORT = 8099;

export interface TestInternet extends AsyncDisposable {
  /** The address that sandboxes may reach. */
  readonly publicAddress: string;
  /** Another one, of another prefix. */
  readonly otherPublicAddress: string;
  /** The host's own address on that network. */
  readonly hostAddress: string;
}

export async function startInternet(): Promise<TestInternet> {
  const id = randomBytes(2).toString("hex");
  const namespace = `inet-${id}`;
  const device = `inet${id}`;
  const metric = randomInt(1, 1_000_000_000);
  const last = 2 * randomInt(1, 127);
  const hostAddress = `198.51.100.${last}`;
  const publicAddress = `198.51.100.${last + 1}`;
  const otherPublicAddress = `203.0.113.${last + 1}`;
  const stack = new AsyncDisposableStack();
  await runCommand("ip", ["netns", "add", namespace]);
  stack.defer(async () => {
    await runCommand("ip", ["netns", "del", namespace]);
  });
  const addresses = [publicAddress, otherPublicAddress, ...CLOSED_ADDRESSES];
  const lines = [
    `link add ${device} type veth peer name eth0 netns ${namespace}`,
    `addr add ${hostAddress}/32 dev ${device}`,
    `link set ${device} up`,
    ...addresses.map((address) => `route add ${address}/32 dev ${device} metric ${metric}`),
  ];
  await runCommand("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` });
  const inside = [
    "link set lo up",
    "link set eth0 up",
    ...addresses.map((address) => `addr add ${address}/32 dev eth0`),
    `route add ${hostAddress}/32 dev eth0`,
    `route add default via ${hostAddress}`,
  ];
  await runCommand("ip", ["-n", namespace, "-batch", "-"], { input: `${inside.join("\n")}\n` });
  const server = spawn("ip", ["netns", "exec", namespace, "python3", "-c", `ADDRESSES = ${JSON.stringify(addresses)}\n${SERVER}`], {
    stdio: "ignore",
  });
  stack.defer(() => void server.kill("SIGKILL"));
  // Check first that all addresses answer the host. So an address that a sandbox cannot reach is blocked and not missing.
  for (const address of addresses) await waitUntil(`${address} answers on the host`, () => answers(address));
  return { publicAddress, otherPublicAddress, hostAddress, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function answers(address: string): Promise<boolean> {
  try {
    return (await fetch(`http://${address}:${INTERNET_PORT}/`, { signal: AbortSignal.timeout(500) })).ok;
  } catch {
    return false;
  }
}

const SERVER = `
import socket, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class H(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.client_address[0].encode())
    def log_message(self, *a): pass
def echo(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((address, ${INTERNET_PORT}))
    while True:
        data, peer = s.recvfrom(2048); s.sendto(data, peer)
# Each address has a socket of its own, so that an answer comes from the address that was asked.
for address in ADDRESSES: threading.Thread(target=echo, args=(address,), daemon=True).start()
ThreadingHTTPServer(("0.0.0.0", ${INTERNET_PORT}), H).serve_forever()
`;
