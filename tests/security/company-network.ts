// A simulated company network behind the host: private addresses, and a proxy that intercepts TLS with the company's own authority.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { waitUntil } from "@skerry/testkit/wait-until";
import { reserveAddresses } from "./reserve-addresses.ts";

export const PROXY_PORT = 3128;
export const OTHER_PORT = 3129;
const HOST = "packages.example";
const CANDIDATES = ["172.31", "10.231", "192.168"].flatMap((range, index) =>
  Array.from({ length: 249 }, (_, third) => ({
    namespace: `corp-${index}-${third}`,
    device: `corp${index}-${third}`,
    addresses: [1, 10, 11].map((last) => `${range}.${third + 1}.${last}`),
  })),
);

export interface CompanyNetwork extends AsyncDisposable {
  /** A private address, at which the proxy and another server listen. */
  readonly proxyAddress: string;
  /** Another private address of the same machine: both listen there too. */
  readonly otherAddress: string;
  /** The URL of the proxy, with its password. */
  readonly proxyUrl: string;
  /** The host's own address on this network, at which a second proxy listens that passes everything on to the first one. */
  readonly hostAddress: string;
  /** Of the second proxy. */
  readonly hostPort: number;
  /** A file with the company's authority. */
  readonly caFile: string;
}

export async function startCompanyNetwork(): Promise<CompanyNetwork> {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "skerry-company-"));
  stack.defer(() => rmSync(dir, { recursive: true }));
  await makeCertificates(dir);
  // Addresses of their own, because several tests may run at once.
  const { namespace, device, addresses } = await reserveAddresses(CANDIDATES);
  const [hostAddress, proxyAddress, otherAddress] = addresses as [string, string, string];
  stack.defer(async () => {
    await runCommand("ip", ["netns", "del", namespace]);
  });
  const outside = [
    `link add ${device} type veth peer name eth0 netns ${namespace}`,
    `addr add ${hostAddress}/32 dev ${device}`,
    `link set ${device} up`,
    ...[proxyAddress, otherAddress].map((address) => `route add ${address}/32 dev ${device}`),
  ];
  await runCommand("ip", ["-batch", "-"], { input: `${outside.join("\n")}\n` });
  const inside = [
    "link set lo up",
    "link set eth0 up",
    ...[proxyAddress, otherAddress].map((address) => `addr add ${address}/32 dev eth0`),
    `route add ${hostAddress}/32 dev eth0`,
    `route add default via ${hostAddress}`,
  ];
  await runCommand("ip", ["-n", namespace, "-batch", "-"], { input: `${inside.join("\n")}\n` });
  const program = join(import.meta.dirname, "company-network.py");
  const args = [String(PROXY_PORT), String(OTHER_PORT), join(dir, "server.crt"), join(dir, "server.key")];
  const server = spawn("nsenter", [`--net=/run/netns/${namespace}`, "python3", program, ...args], { stdio: "ignore" });
  stack.defer(() => void server.kill("SIGKILL"));
  // Check first that everything answers the host. So what a sandbox cannot reach is blocked and not missing.
  for (const address of [proxyAddress, otherAddress]) {
    for (const port of [PROXY_PORT, OTHER_PORT]) await waitUntil(`${address}:${port} answers on the host`, () => accepts(address, port));
  }
  const second = createServer((socket) => {
    const upstream = connect(PROXY_PORT, proxyAddress);
    for (const side of [socket, upstream]) side.on("error", () => [socket, upstream].map((one) => one.destroy()));
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => second.listen(0, hostAddress, resolve));
  stack.defer(() => void second.close());
  const whole = stack.move();
  return {
    hostAddress,
    hostPort: (second.address() as AddressInfo).port,
    proxyAddress,
    otherAddress,
    proxyUrl: `http://company:pass-word@${proxyAddress}:${PROXY_PORT}`,
    caFile: join(dir, "ca.crt"),
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}

async function makeCertificates(dir: string): Promise<void> {
  const openssl = (...args: string[]) => runCommand("openssl", args);
  const file = (name: string) => join(dir, name);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await openssl("req", "-x509", ...key, "-keyout", file("ca.key"), "-out", file("ca.crt"), "-subj", "/CN=the company", "-days", "2");
  await openssl("req", ...key, "-keyout", file("server.key"), "-out", file("server.csr"), "-subj", `/CN=${HOST}`);
  writeFileSync(file("names"), `subjectAltName=DNS:${HOST}\n`);
  const authority = ["-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-CAcreateserial"];
  await openssl(
    "x509",
    "-req",
    "-in",
    file("server.csr"),
    ...authority,
    "-extfile",
    file("names"),
    "-out",
    file("server.crt"),
    "-days",
    "2",
  );
}

function accepts(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: 5_000 });
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
  });
}
