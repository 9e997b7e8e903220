// What a sandbox reaches over IPv6, attacked from inside: docs/network.md.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { egressOf } from "./egress-lines.ts";
import { CLOSED_IPV6, INTERNET_PORT, startInternet, type TestInternet } from "./test-internet.ts";

const EVERYTHING = "0.0.0.0/0";

const answers = (url: string) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );

describe.each(runtimesFor("IPv6"))("IPv6 on %s", (runtime) => {
  let platform: Platform;
  let internet: TestInternet;
  /** Two public addresses of IPv6, and one of IPv4. */
  let one: string;
  let two: string;
  let ipv4: string;

  beforeAll(async () => {
    platform = await startPlatform({ runtime, env: { SKERRY_IPV6: "on" } });
    internet = await startInternet();
    [one, two, ipv4] = [internet.ipv6.publicAddress, internet.ipv6.otherPublicAddress, internet.publicAddress];
  });
  afterAll(async () => {
    await internet?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  async function create(network?: object): Promise<Sandbox> {
    const answer = await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 600, ...(network && { network }) } });
    expect(answer).toMatchObject({ status: 201 });
    return await connect((answer.body as { sandboxID: string }).sandboxID);
  }
  const connect = (id: string) => Sandbox.connect(id, { ...clientOf(platform), timeoutMs: 600_000 });

  /** The addresses that the sandbox reaches, over TCP and UDP at once. Fails when the two disagree. */
  async function reached(from: Sandbox, addresses: readonly string[], port = INTERNET_PORT): Promise<string[]> {
    const { stdout } = await from.commands.run(`python3 -c '${PROBE}' ${port} ${addresses.join(" ")}`);
    const { tcp, udp } = JSON.parse(stdout) as { tcp: string[]; udp: string[] };
    expect(udp).toEqual(tcp);
    return tcp;
  }

  function slotOf({ sandboxId }: Sandbox) {
    const record = JSON.parse(readFileSync(join(platform.dataDir, "node/sandboxes", sandboxId, "sandbox.json"), "utf8"));
    return record.slot as { addresses: { ipv6: { host: string; guest: string } }; hostInterface: string; namespacePath: string };
  }

  it("reaches public addresses behind that of the host, and neither the host, neighbours nor what is closed to everybody", async () => {
    const [sandbox, neighbour] = await Promise.all([create(), create()]);
    const { stdout } = await sandbox.commands.run(`curl -sS -m 60 http://[${one}]:${INTERNET_PORT}/`);
    expect(stdout).toBe(internet.ipv6.hostAddress);
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ family, internal, scopeid }) => family === "IPv6" && !internal && !scopeid)
      .map(({ address }) => address);
    const { host } = slotOf(sandbox).addresses.ipv6;
    expect(own).toContain(host);
    const closed = [...CLOSED_IPV6, internet.ipv6.hostAddress, host, slotOf(neighbour).addresses.ipv6.host, ...own.slice(0, 4)];
    expect(await reached(sandbox, [one, two, ...closed])).toEqual([one, two]);
    expect(await reached(sandbox, closed, platform.ports.api)).toEqual([]);
    const { guest } = slotOf(neighbour).addresses.ipv6;
    await neighbour.commands.run("python3 -m http.server --bind :: 8000", { background: true, timeoutMs: 0 });
    // For comparison: root on this host reaches it.
    await waitUntil("the neighbour's server answers on the host", () => answers(`http://[${guest}]:8000/`));
    expect(await reached(sandbox, [guest], 8000)).toEqual([]);
    // Its connections end with it at the latest.
    await Promise.all([sandbox.kill(), neighbour.kill()]);
    await egressOf(platform, sandbox.sandboxId, (lines, { connections }) => {
      const refused = lines.filter(({ verdict }) => verdict === "refused");
      for (const address of [...CLOSED_IPV6, guest])
        expect(refused).toContainEqual(expect.objectContaining({ rule: "own_network", address }));
      expect(connections).toBeGreaterThanOrEqual(5);
      expect(lines).toContainEqual(expect.objectContaining({ verdict: "allowed", protocol: "udp", address: one, port: INTERNET_PORT }));
    });
  });

  it("sends from no other address than its own, and announces no routes", async () => {
    const sandbox = await create();
    const { namespacePath, hostInterface } = slotOf(sandbox);
    const mac = readFileSync(`/sys/class/net/${hostInterface}/address`, "utf8").trim();
    const routes = () => execFileSync("ip", ["-6", "route", "show", "dev", hostInterface], { encoding: "utf8" });
    const before = routes();
    // Whoever gets so far that it may send what it likes.
    execFileSync("nsenter", [`--net=${namespacePath}`, "python3", "-c", SPOOF, one, mac], { stdio: "ignore" });
    await egressOf(platform, sandbox.sandboxId, (lines) => {
      const spoofed = { verdict: "refused", rule: "spoofed_address", protocol: "udp", address: one, port: 9 };
      expect(lines).toContainEqual(expect.objectContaining(spoofed));
    });
    expect(routes()).toBe(before);
    await sandbox.kill();
  });

  it("is closed by rules that deny it, and by those that deny everything of IPv4", async () => {
    const cases = [
      { network: { denyOut: [one] }, expected: [two, ipv4] },
      { network: { denyOut: ["2001:db8::/32"] }, expected: [ipv4] },
      { network: { denyOut: ["::/0"] }, expected: [ipv4] },
      { network: { denyOut: [EVERYTHING] }, expected: [] },
      { network: { allowOut: [one], denyOut: [EVERYTHING] }, expected: [one] },
      // Prefixes within each other.
      { network: { allowOut: [`${one}/64`, one, "2001:DB8::/32"], denyOut: ["::/0"] }, expected: [one, two, ipv4] },
      // Names are reached over IPv4.
      { network: { allowOut: ["example.com"], denyOut: [EVERYTHING] }, expected: [] },
    ];
    const check = async ({ network, expected }: (typeof cases)[number]) => {
      const sandbox = await create(network);
      expect({ network, reached: await reached(sandbox, [one, two, ipv4]) }).toEqual({ network, reached: expected });
      await sandbox.kill();
    };
    await Promise.all(cases.map(check));
  });

  it("is not a way around rules that the egress proxy must see", async () => {
    const rules = { "api.example.com": [{ transform: { headers: { "X-Key": "value" } } }] };
    const sandbox = await create({ rules });
    expect(await reached(sandbox, [one])).toEqual([one]);
    const { stderr } = await sandbox.commands.run(`curl -sS -m 5 https://[${one}]/ || true`);
    expect(stderr).toContain("Failed to connect");
    await sandbox.kill();
  });

  it("has rules that change while it runs, hold after a pause and a crash, and for forks; the next sandbox has none", async () => {
    const sandbox = await create();
    expect(await reached(sandbox, [one, two])).toEqual([one, two]);
    await sandbox.updateNetwork({ denyOut: [one] });
    expect(await reached(sandbox, [one, two])).toEqual([two]);
    await sandbox.pause();
    expect(await reached(await connect(sandbox.sandboxId), [one, two])).toEqual([two]);
    const { body } = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 600 } });
    const [forked] = body as { sandbox: { sandboxID: string } }[];
    await platform.kill9();
    await platform.start();
    for (const id of [sandbox.sandboxId, forked?.sandbox.sandboxID ?? ""]) {
      const held = await connect(id);
      expect(await reached(held, [one, two])).toEqual([two]);
      await held.kill();
    }
    const next = await Promise.all([create(), create()]);
    for (const free of next) expect(await reached(free, [one, two])).toEqual([one, two]);
    await Promise.all(next.map((free) => free.kill()));
  });

  it("leaves no connection to the next sandbox with its address, and counts among its connections", async () => {
    const sandbox = await create({ limits: { connections: 2 } });
    const { guest } = slotOf(sandbox).addresses.ipv6;
    const known = () =>
      execFileSync("conntrack", ["-L", "-f", "ipv6", "--orig-src", guest], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    await sandbox.commands.run(`python3 -c '${HOLD}' ${one} ${INTERNET_PORT}`);
    expect(known()).toContain(one);
    await sandbox.kill();
    expect(known()).toBe("");
  });

  it("is closed altogether where the operator switched it off, also for sandboxes that had it", async () => {
    const before = await create();
    expect(await reached(before, [one])).toEqual([one]);
    await platform.restart({ SKERRY_IPV6: "off" });
    expect(await reached(await connect(before.sandboxId), [one, ipv4])).toEqual([ipv4]);
    const sandbox = await create();
    expect(await reached(sandbox, [one, ipv4])).toEqual([ipv4]);
    expect((await sandbox.commands.run("cat /proc/net/if_inet6")).stdout).not.toContain("eth0");
    await Promise.all([sandbox.kill(), before.kill()]);
  });
});

const PROBE = `
import json, socket, sys, threading
port, addresses = int(sys.argv[1]), sys.argv[2:]
reached = {"tcp": [], "udp": []}
def probe(kind, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM); s.settimeout(4)
        s.connect((address, port))
        if kind == "udp": s.send(b"hello"); s.recv(64)
        reached[kind].append(address)
    except OSError: pass
threads = [threading.Thread(target=probe, args=(kind, address)) for kind in reached for address in addresses]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({kind: [a for a in addresses if a in found] for kind, found in reached.items()}))`.replaceAll("'", '"');

/** Opens two connections, is refused a third one, and ends without closing them. */
const HOLD = `
import os, socket, sys
held = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(2)]
try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 4); raise SystemExit("a third one")
except OSError: pass
os._exit(0)`.replaceAll("'", '"');

/** A datagram from a neighbour's prefix, and the announcement of a router, from the link's own addresses and from a global one. */
const SPOOF = `
import socket, struct, sys
target, mac = socket.inet_pton(socket.AF_INET6, sys.argv[1]), bytes.fromhex(sys.argv[2].replace(":", ""))
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); raw.bind(("eth0", 0))
def send(source, destination, protocol, content, hops):
    source = socket.inet_pton(socket.AF_INET6, source)
    pseudo = source + destination + struct.pack("!II", len(content), protocol)
    at = 6 if protocol == 17 else 2
    data = pseudo + content + b"\\0" * (len(content) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    content = content[:at] + struct.pack("!H", ~total & 0xffff or 0xffff) + content[at + 2:]
    raw.send(mac + bytes(6) + b"\\x86\\xdd" + struct.pack("!IHBB", 6 << 28, len(content), protocol, hops) + source + destination + content)
send("fd53:6b79:9999::1", target, 17, struct.pack("!HHHH", 9, 9, 12, 0) + b"here", 64)
router = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + struct.pack("!BBBBIII16s", 3, 4, 64, 0xc0, 86400, 14400, 0, socket.inet_pton(socket.AF_INET6, "2001:db8:bad::"))
for source in ("fe80::1", "2001:db8:bad::1"): send(source, socket.inet_pton(socket.AF_INET6, "ff02::1"), 58, router, 255)`;
