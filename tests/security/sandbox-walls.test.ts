import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { scaled } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { CLOSED_ADDRESSES, INTERNET_PORT, startInternet, type TestInternet } from "./test-internet.ts";

/** At least one of them gets a slot of the four sandboxes before. */
const NEXT = scaled("sandboxes that get the network slot of another", { sample: 6, full: 10 });

describe.each(["gvisor", "runc"] as const)("walls around a sandbox on %s", (runtime) => {
  let platform: Platform;
  let internet: TestInternet;
  let sandbox: Sandbox;
  const host = createServer((_request, response) => response.end("the host"));

  beforeAll(async () => {
    platform = await startPlatform({ runtime });
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

  function addressesOf(sandboxId: string): { host: string; guest: string } {
    const record = JSON.parse(readFileSync(join(platform.dataDir, "node/sandboxes", sandboxId, "sandbox.json"), "utf8"));
    return record.slot.addresses;
  }

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
      [hostPort(), platform.ports.api].map((port) => ({ address, port })),
    );
    expect(await probeAll(sandbox, targets)).toEqual(targets.map(() => "silent"));
    // The sandbox has its own loopback.
    expect(await probe(sandbox, "127.0.0.1", hostPort())).toBe("closed");
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
