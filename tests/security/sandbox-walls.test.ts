import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { egressOf } from "./egress-lines.ts";
import { CLOSED_ADDRESSES, INTERNET_PORT, startInternet, type TestInternet } from "./test-internet.ts";

/** At least one of them gets a slot of the four sandboxes before. */
const NEXT = scaled("sandboxes that get the network slot of another", { sample: 6, full: 10 });

describe.each(runtimesFor("walls around a sandbox"))("walls around a sandbox on %s", (runtime) => {
  let platform: Platform;
  let internet: TestInternet;
  let sandbox: Sandbox;
  const host = createServer((_request, response) => response.end("the host"));

  beforeAll(async () => {
    platform = await startPlatform({ runtime, metrics: true, env: { SKERRY_METRICS_LISTEN: "0.0.0.0" } });
    internet = await startInternet();
    await new Promise<void>((resolve) => host.listen(0, "0.0.0.0", resolve));
    sandbox = await Sandbox.create(clientOf(platform));
  });
  afterAll(async () => {
    host.close();
    await internet?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  const hostPort = () => (host.address() as AddressInfo).port;
  const metricsPort = () => platform.metricsPorts[0] ?? 0;

  /** The result of a TCP connection from inside: "open", "closed" (refused) or "silent" (no response). */
  async function probe(from: Sandbox, address: string, port: number): Promise<string | undefined> {
    return (await probeAll(from, [{ address, port }]))[0];
  }

  /** The results for all targets, which are tried at the same time. */
  async function probeAll(from: Sandbox, targets: readonly { address: string; port: number }[]): Promise<string[]> {
    const program = `
import concurrent.futures, json, socket, sys
def probe(target):
    s = socket.socket(socket.AF_INET6 if ":" in target["address"] else socket.AF_INET); s.settimeout(3)
    try:
        s.connect((target["address"], target["port"])); return "open"
    except ConnectionRefusedError: return "closed"
    except OSError: return "silent"
targets = json.loads(sys.argv[1])
with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool: print(json.dumps(list(pool.map(probe, targets))))`;
    const { stdout } = await from.commands.run(`python3 -c '${program}' '${JSON.stringify(targets)}'`);
    return JSON.parse(stdout) as string[];
  }

  function slotOf(sandboxId: string) {
    const record = JSON.parse(readFileSync(join(platform.dataDir, "node/sandboxes", sandboxId, "sandbox.json"), "utf8"));
    return record.slot as { addresses: { host: string; guest: string }; hostInterface: string; namespacePath: string };
  }

  const addressesOf = (sandboxId: string) => slotOf(sandboxId).addresses;

  it("reaches the public internet, behind the host's address", async () => {
    const { stdout } = await sandbox.commands.run(`curl -sS -m 60 http://${internet.publicAddress}:${INTERNET_PORT}/`);
    expect(stdout).toBe(internet.hostAddress);
  });

  it(`can't reach ${CLOSED_ADDRESSES.join(", ")}, which the host can`, async () => {
    const targets = CLOSED_ADDRESSES.map((address) => ({ address, port: INTERNET_PORT }));
    expect(await probeAll(sandbox, targets)).toEqual(targets.map(() => "silent"));
  });

  it("can't reach the host by any of its addresses", async () => {
    const addresses = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter((entry) => entry.family === "IPv4" && !entry.internal)
      .map((entry) => entry.address);
    const own = addressesOf(sandbox.sandboxId).host;
    expect(addresses).toContain(own);
    const targets = [...new Set([own, internet.hostAddress, ...addresses.slice(0, 4)])].flatMap((address) =>
      [hostPort(), platform.ports.api, metricsPort()].map((port) => ({ address, port })),
    );
    // For comparison: the host reaches the metrics at this address, which have no secret.
    expect((await fetch(`http://${own}:${metricsPort()}/metrics`)).status).toBe(200);
    expect(await probeAll(sandbox, targets)).toEqual(targets.map(() => "silent"));
    // The sandbox has its own loopback.
    const loopback = [hostPort(), metricsPort()].map((port) => ({ address: "127.0.0.1", port }));
    expect(await probeAll(sandbox, loopback)).toEqual(["closed", "closed"]);
  });

  it("can't reach another sandbox, and has no IPv6", async () => {
    const other = await Sandbox.create(clientOf(platform));
    const { guest } = addressesOf(other.sandboxId);
    // For comparison: root on this host reaches it.
    expect((await fetch(`http://${guest}:49983/health`)).status).toBe(204);
    const targets = [
      { address: guest, port: 49_983 },
      { address: "2001:db8::1", port: 80 },
    ];
    expect(await probeAll(sandbox, targets)).toEqual(["silent", "silent"]);
    await other.kill();
  });

  it("can't be reached by an ordinary user of the host", async () => {
    const { guest } = addressesOf(sandbox.sandboxId);
    const program = `import socket; s = socket.socket(); s.settimeout(2); s.connect((${JSON.stringify(guest)}, 49983))`;
    const asNobody = () =>
      execFileSync("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", program], { stdio: "pipe" });
    expect(asNobody).toThrow(/refused|timed out|unreachable/i);
  });

  it("reaches nothing at all when it is created without internet access", async () => {
    const { sandboxID } = (
      await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", allow_internet_access: false, timeout: 3_600 } })
    ).body as { sandboxID: string };
    const closed = await Sandbox.connect(sandboxID, clientOf(platform));
    const targets = [
      { address: internet.publicAddress, port: INTERNET_PORT },
      { address: "8.8.8.8", port: 53 },
    ];
    expect(await probeAll(closed, targets)).toEqual(["silent", "silent"]);
    // It is still blocked after a restart of the daemon.
    await platform.kill9();
    await platform.start();
    expect(await probe(closed, internet.publicAddress, INTERNET_PORT)).toBe("silent");
    // Its forks have no internet either, nor does it have any after a pause.
    const forks = await callApi(platform, `/sandboxes/${sandboxID}/fork`, { body: { count: 2, timeout: 3_600 } });
    expect(forks.status).toBe(201);
    const forked = forks.body as { sandbox: { sandboxID: string } }[];
    await closed.pause();
    const all = await Promise.all(
      [closed.sandboxId, ...forked.map((one) => one.sandbox.sandboxID)].map((id) => Sandbox.connect(id, clientOf(platform))),
    );
    expect(await Promise.all(all.map((one) => probe(one, internet.publicAddress, INTERNET_PORT)))).toEqual(["silent", "silent", "silent"]);
    await Promise.all(all.map((one) => one.kill()));
    // The next sandbox gets the network slot without the mark.
    const next = await Promise.all(Array.from({ length: NEXT }, () => Sandbox.create(clientOf(platform))));
    expect(await Promise.all(next.map((one) => probe(one, internet.publicAddress, INTERNET_PORT)))).toEqual(next.map(() => "open"));
    await Promise.all(next.map((one) => one.kill()));
  });

  it("leaves no open connection to the next sandbox with its address", async () => {
    const former = await Sandbox.create(clientOf(platform));
    const { guest } = addressesOf(former.sandboxId);
    const known = () => execFileSync("conntrack", ["-L", "--orig-src", guest], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    await former.commands.run(
      `echo hello > /dev/udp/${internet.publicAddress}/${INTERNET_PORT}; exec 3<>/dev/tcp/${internet.publicAddress}/${INTERNET_PORT}`,
    );
    expect(known()).toContain(internet.publicAddress);
    await former.kill();
    expect(known()).toBe("");
  });

  it("leaves lines of what it tried and of what it reached, and one line of a flood that does not fit", async () => {
    const [busy, other] = await Promise.all([Sandbox.create(clientOf(platform)), Sandbox.create(clientOf(platform))]);
    const { guest, host: own } = addressesOf(busy.sandboxId);
    const { publicAddress } = internet;
    const flood = `
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    s = socket.socket(socket.AF_INET, kind); s.settimeout(5); s.connect(("${publicAddress}", ${INTERNET_PORT}))
    s.send(b"GET / HTTP/1.0\\r\\n\\r\\n"); s.recv(2048); s.close()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(3000): s.sendto(b"x", ("${CLOSED_ADDRESSES[0]}", 1 + number))`;
    await busy.files.write("/tmp/flood.py", flood);
    await busy.commands.run("python3 /tmp/flood.py");
    const targets = [
      { address: guest, port: 49_983 },
      { address: own, port: hostPort() },
      { address: CLOSED_ADDRESSES[5] ?? "", port: 80 },
    ];
    await probeAll(other, targets);
    // Whoever gets so far that it may send what it likes still cannot send from another address.
    const { namespacePath, hostInterface } = slotOf(other.sandboxId);
    const mac = readFileSync(`/sys/class/net/${hostInterface}/address`, "utf8").trim();
    execFileSync("nsenter", [`--net=${namespacePath}`, "python3", "-c", SPOOF, "10.254.254.254", publicAddress, mac]);
    await egressOf(platform, other.sandboxId, (lines) => {
      for (const { address, port } of targets) {
        expect(lines).toContainEqual(expect.objectContaining({ verdict: "refused", rule: "own_network", protocol: "tcp", address, port }));
      }
      expect(lines).toContainEqual(
        expect.objectContaining({ verdict: "refused", rule: "spoofed_address", protocol: "udp", address: publicAddress, port: 9 }),
      );
    });
    await egressOf(platform, busy.sandboxId, (lines, totals) => {
      const refused = lines.filter(({ verdict }) => verdict === "refused");
      expect(refused.length).toBeLessThan(500);
      expect(refused.reduce((sum, { count }) => sum + count, 0)).toBe(3_000);
      expect(refused).toContainEqual(expect.objectContaining({ rule: "omitted" }));
      expect(totals.refused).toBe(3_000);
      expect(totals.sentBytes).toBeGreaterThan(150);
      expect(totals.receivedBytes).toBeGreaterThan(150);
    });
    // Its connections end with it at the latest, and the log can be read afterwards.
    await busy.kill();
    await egressOf(platform, busy.sandboxId, (lines) => {
      const [tcp] = lines.filter(({ protocol, verdict }) => protocol === "tcp" && verdict === "allowed");
      expect(tcp).toMatchObject({ address: publicAddress, port: INTERNET_PORT });
      expect(Math.min(tcp?.sentBytes ?? 0, tcp?.receivedBytes ?? 0)).toBeGreaterThan(200);
      expect(lines).toContainEqual(
        expect.objectContaining({
          verdict: "allowed",
          rule: "",
          protocol: "udp",
          address: publicAddress,
          port: INTERNET_PORT,
          sentBytes: 46,
        }),
      );
    });
    await other.kill();
  });

  it("refuses requests without its token and with another sandbox's token", async () => {
    const other = await Sandbox.create(clientOf(platform));
    const tokenOf = async (id: string) =>
      ((await callApi(platform, `/sandboxes/${id}`)).body as { envdAccessToken: string }).envdAccessToken;
    const call = (headers: Record<string, string>) =>
      fetch(`${platform.edgeUrl}/process.Process/List`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49983", ...headers },
        body: "{}",
      });
    expect((await call({})).status).toBe(401);
    expect((await call({ "X-Access-Token": await tokenOf(other.sandboxId) })).status).toBe(401);
    expect((await call({ "X-Access-Token": await tokenOf(sandbox.sandboxId) })).status).toBe(200);
    const init = await fetch(`${platform.edgeUrl}/init`, {
      method: "POST",
      headers: { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49983" },
      body: "{}",
    });
    expect(init.status).toBe(404);
    await other.kill();
  });
});

/** Sends a datagram with a source address of its own. */
const SPOOF = `
import socket, struct, sys
source, target = (socket.inet_aton(address) for address in sys.argv[1:3])
udp = struct.pack(">HHHH", 4000, 9, 12, 0) + b"spoo"
def head_with(checksum): return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, checksum, source, target)
total = sum(struct.unpack(">10H", head_with(0)))
head = head_with(~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
s.sendto(head + udp, ("eth0", 0x0800, 0, 1, bytes.fromhex(sys.argv[3].replace(":", ""))))
`;
