// What a caller's rules close and open, attacked from inside sandboxes: docs/network.md.

import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { CLOSED_ADDRESSES, INTERNET_PORT, startInternet, type TestInternet } from "./test-internet.ts";

const EVERYTHING = "0.0.0.0/0";

describe.each(runtimesFor("rules for outgoing traffic"))("rules for outgoing traffic on %s", (runtime) => {
  let platform: Platform;
  let internet: TestInternet;
  /** The two public addresses. */
  let one: string;
  let two: string;

  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    internet = await startInternet();
    [one, two] = [internet.publicAddress, internet.otherPublicAddress];
  });
  afterAll(async () => {
    await internet?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  async function create(body: object): Promise<Sandbox> {
    const answer = await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 600, ...body } });
    expect(answer).toMatchObject({ status: 201 });
    return await connect((answer.body as { sandboxID: string }).sandboxID);
  }
  const connect = (id: string) => Sandbox.connect(id, { ...clientOf(platform), timeoutMs: 600_000 });
  const networkOf = async ({ sandboxId }: Sandbox) =>
    ((await callApi(platform, `/sandboxes/${sandboxId}`)).body as { network?: object }).network;

  /** The addresses that the sandbox reaches, over TCP and UDP at once. Fails when the two disagree. */
  async function reached(from: Sandbox, addresses: readonly string[], port = INTERNET_PORT): Promise<string[]> {
    const { stdout } = await from.commands.run(`python3 -c '${PROBE}' ${port} ${addresses.join(" ")}`);
    const { tcp, udp } = JSON.parse(stdout) as { tcp: string[]; udp: string[] };
    expect(udp).toEqual(tcp);
    return tcp;
  }

  function addressesOf(sandboxId: string): { host: string; guest: string } {
    const record = JSON.parse(readFileSync(join(platform.dataDir, "node/sandboxes", sandboxId, "sandbox.json"), "utf8"));
    return record.slot.addresses;
  }

  it("close what they deny, and nothing else", async () => {
    const network = { denyOut: [one, "2001:db8::/32"] };
    const sandbox = await create({ network });
    expect(await networkOf(sandbox)).toEqual(network);
    expect(await reached(sandbox, [one, two])).toEqual([two]);
    await sandbox.kill();
  });

  it("open only what they allow when everything is denied; without IPv6 and name servers", async () => {
    const sandbox = await create({ network: { allowOut: [one], denyOut: [EVERYTHING] } });
    expect(await reached(sandbox, [one, two, ...CLOSED_ADDRESSES, "2001:db8::1"])).toEqual([one]);
    expect(await reached(sandbox, ["8.8.8.8", "1.1.1.1"], 53)).toEqual([]);
    await sandbox.kill();
  });

  it("open what they allow to a sandbox without internet access", async () => {
    const sandbox = await create({ allow_internet_access: false, network: { allowOut: [`${two}/32`] } });
    expect(await reached(sandbox, [one, two])).toEqual([two]);
    await sandbox.kill();
  });

  it("never open the host, a neighbour or a private network", async () => {
    const neighbour = await create({});
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ family, internal }) => family === "IPv4" && !internal)
      .map(({ address }) => address);
    const targets = [...CLOSED_ADDRESSES, internet.hostAddress, addressesOf(neighbour.sandboxId).host, ...own.slice(0, 4)];
    const { guest } = addressesOf(neighbour.sandboxId);
    const network = { allowOut: [EVERYTHING, "10.0.0.0/8", ...targets, guest], denyOut: [EVERYTHING] };
    const sandbox = await create({ network });
    expect(await reached(sandbox, [one, ...targets])).toEqual([one]);
    expect(await reached(sandbox, [guest], 49_983)).toEqual([]);
    expect(await reached(sandbox, targets, platform.ports.api)).toEqual([]);
    await Promise.all([sandbox.kill(), neighbour.kill()]);
  });

  it("change while the sandbox runs: connections that they close are cut, and no others", async () => {
    const sandbox = await create({});
    const program = `python3 -c '${HOLD}' ${INTERNET_PORT} ${one} ${two}`;
    const held = await sandbox.commands.run(program, { background: true, timeoutMs: 0 });
    await waitUntil("the connections are open", () => sandbox.files.exists("/tmp/held"));
    await sandbox.updateNetwork({ denyOut: [one] });
    expect(await networkOf(sandbox)).toEqual({ denyOut: [one] });
    await sandbox.files.write("/tmp/go", "");
    expect(JSON.parse((await held.wait()).stdout)).toEqual({ [one]: "reset", [two]: "alive" });
    expect(await reached(sandbox, [one, two])).toEqual([two]);
    // A change that is refused changes nothing.
    await expect(sandbox.updateNetwork({ denyOut: [two, "0.0.0.0"] })).rejects.toThrow("invalid denied CIDR 0.0.0.0");
    expect(await reached(sandbox, [one, two])).toEqual([two]);
    await sandbox.updateNetwork({ allowOut: [one], denyOut: [EVERYTHING] });
    expect(await reached(sandbox, [one, two])).toEqual([one]);
    await sandbox.updateNetwork({});
    expect(await networkOf(sandbox)).toBeUndefined();
    expect(await reached(sandbox, [one, two])).toEqual([one, two]);
    await sandbox.updateNetwork({ allowInternetAccess: false });
    expect(await reached(sandbox, [one, two])).toEqual([]);
    await sandbox.kill();
  });

  it("change while the sandbox is paused, and hold after a crash of the platform", async () => {
    const sandbox = await create({ network: { denyOut: [one] } });
    await sandbox.pause();
    await sandbox.updateNetwork({ denyOut: [two] });
    expect(await networkOf(sandbox)).toEqual({ denyOut: [two] });
    const resumed = await connect(sandbox.sandboxId);
    expect(await reached(resumed, [one, two])).toEqual([one]);
    await resumed.updateNetwork({ denyOut: [one] });
    await platform.kill9();
    await platform.start();
    expect(await reached(await connect(sandbox.sandboxId), [one, two])).toEqual([two]);
    await resumed.kill();
  });

  it("hold for forks, after a crash of the platform, and after a pause", async () => {
    const network = { allowOut: [one], denyOut: [EVERYTHING] };
    const sandbox = await create({ network });
    const fork = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 600 } });
    expect(fork.status).toBe(201);
    const [forked] = fork.body as { sandbox: { sandboxID: string } }[];
    await platform.kill9();
    await platform.start();
    const expectHeld = async (ids: readonly (string | undefined)[]) => {
      for (const id of ids) {
        const held = await connect(id ?? "");
        expect(await networkOf(held)).toEqual(network);
        expect(await reached(held, [one, two])).toEqual([one]);
      }
    };
    await expectHeld([sandbox.sandboxId, forked?.sandbox.sandboxID]);
    await sandbox.pause();
    expect(await networkOf(sandbox)).toEqual(network);
    await expectHeld([sandbox.sandboxId]);
    await Promise.all([sandbox.kill(), (await connect(forked?.sandbox.sandboxID ?? "")).kill()]);
    // The next sandboxes get their slots without the rules.
    const next = await Promise.all([create({}), create({})]);
    for (const free of next) expect(await reached(free, [one, two])).toEqual([one, two]);
    await Promise.all(next.map((free) => free.kill()));
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

/** Opens a connection to each address, and uses them when it is told to. */
const HOLD = `
import json, os, socket, sys, time
port, addresses = int(sys.argv[1]), sys.argv[2:]
held = {address: socket.create_connection((address, port)) for address in addresses}
open("/tmp/held", "w").close()
while not os.path.exists("/tmp/go"): time.sleep(0.05)
def use(connection):
    connection.settimeout(20)
    try:
        connection.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
        return "alive" if connection.recv(100) else "closed"
    except ConnectionResetError: return "reset"
    except OSError: return "silent"
print(json.dumps({address: use(connection) for address, connection in held.items()}))`;
