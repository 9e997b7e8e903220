// How much of the network a sandbox may use, attacked from inside: docs/network.md.

import { type ChildProcess, spawn } from "node:child_process";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { egressOf } from "./egress-lines.ts";
import { startInternet, type TestInternet } from "./test-internet.ts";

const PORT = 8100;
const CONNECTIONS = 8;
/** 2 MB in each direction take two seconds and more. */
const MBPS = 8;
const BYTES = 2_000_000;
/** What the token bucket lets through at once, and rounding. */
const LEAST_SECONDS = 1.8;

describe.each(runtimesFor("limits of the network"))("limits of the network on %s", (runtime) => {
  let platform: Platform;
  let internet: TestInternet;
  let server: ChildProcess;

  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    internet = await startInternet();
    server = spawn("nsenter", [`--net=/run/netns/${internet.namespace}`, "python3", "-c", SERVER], { stdio: "ignore" });
  });
  afterAll(async () => {
    server?.kill("SIGKILL");
    await internet?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  const ask = (body: object) => callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 600, ...body } });
  async function create(limits?: object): Promise<Sandbox> {
    const answer = await ask(limits === undefined ? {} : { network: { limits } });
    expect(answer).toMatchObject({ status: 201 });
    return await connect((answer.body as { sandboxID: string }).sandboxID);
  }
  const connect = (id: string) => Sandbox.connect(id, { ...clientOf(platform), timeoutMs: 600_000 });
  const change = ({ sandboxId }: Sandbox, body: object) => callApi(platform, `/sandboxes/${sandboxId}/network`, { method: "PUT", body });
  const networkOf = async ({ sandboxId }: Sandbox) =>
    ((await callApi(platform, `/sandboxes/${sandboxId}`)).body as { network?: object }).network;
  const setTeamLimits = async (overrides: object) => {
    const { teamId, adminToken } = platform.secrets;
    const headers = { "X-Admin-Token": adminToken };
    return await callApi(platform, `/admin/teams/${teamId}/limits`, { method: "PUT", body: { overrides }, headers });
  };

  const run = async (from: Sandbox, program: string, ...args: (string | number)[]) =>
    JSON.parse((await from.commands.run(`python3 -c '${program}' ${internet.publicAddress} ${args.join(" ")}`)).stdout) as number;
  /** How many of twice as many connections as the limit are open at once. */
  const opened = (from: Sandbox, kind: "tcp" | "udp" = "tcp") => run(from, OPEN, kind, 2 * CONNECTIONS);
  const seconds = (from: Sandbox, direction: "up" | "down") => run(from, TRANSFER, direction, BYTES);

  it("hold what a sandbox sends and what it receives, and not what the platform does with it", async () => {
    const sandbox = await create({ bandwidthMbps: MBPS });
    expect(await networkOf(sandbox)).toEqual({ limits: { bandwidthMbps: MBPS } });
    expect(await seconds(sandbox, "up")).toBeGreaterThan(LEAST_SECONDS);
    expect(await seconds(sandbox, "down")).toBeGreaterThan(LEAST_SECONDS);
    // A sandbox that sends as fast as it can is still reached, and ends in time.
    const flood = await sandbox.commands.run(`python3 -c '${FLOOD}' ${internet.publicAddress}`, { background: true, timeoutMs: 0 });
    await sandbox.files.write("/tmp/large", new Blob([Buffer.alloc(20_000_000)]));
    expect((await sandbox.files.getInfo("/tmp/large")).size).toBe(20_000_000);
    await flood.kill();
    // A change counts at once, also when the former limit has a queue.
    expect((await change(sandbox, { limits: { bandwidthMbps: 2 * MBPS } })).status).toBe(204);
    expect(await seconds(sandbox, "up")).toBeGreaterThan(LEAST_SECONDS / 2);
    expect((await change(sandbox, { limits: null })).status).toBe(204);
    expect(await networkOf(sandbox)).toBeUndefined();
    expect(await seconds(sandbox, "up")).toBeLessThan(LEAST_SECONDS / 2);
    await sandbox.kill();
  });

  it("hold the connections of a sandbox, of every protocol, and leave those of its neighbour", async () => {
    const [sandbox, neighbour] = await Promise.all([create({ connections: CONNECTIONS }), create()]);
    expect(await opened(sandbox)).toBe(CONNECTIONS);
    expect(await opened(neighbour)).toBe(2 * CONNECTIONS);
    // What was closed makes room for others.
    expect(await opened(sandbox)).toBe(CONNECTIONS);
    await egressOf(platform, sandbox.sandboxId, (lines) => {
      const refused = lines.filter(({ verdict }) => verdict === "refused");
      expect(refused.map(({ rule }) => rule)).toContain("too_many_connections");
      expect(refused.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(CONNECTIONS);
    });
    // Rules for addresses leave the limit as it is.
    expect((await change(sandbox, { denyOut: ["203.0.113.250"] })).status).toBe(204);
    expect(await networkOf(sandbox)).toEqual({ denyOut: ["203.0.113.250"], limits: { connections: CONNECTIONS } });
    expect(await opened(sandbox, "udp")).toBeLessThanOrEqual(CONNECTIONS);
    await Promise.all([sandbox.kill(), neighbour.kill()]);
  });

  it("hold after a pause, for forks, and after a crash of the platform", async () => {
    const sandbox = await create({ connections: CONNECTIONS, bandwidthMbps: MBPS });
    await sandbox.pause();
    expect(await opened(await connect(sandbox.sandboxId))).toBe(CONNECTIONS);
    const { body } = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { timeout: 600 } });
    const [forked] = body as { sandbox: { sandboxID: string } }[];
    await platform.kill9();
    await platform.start();
    for (const id of [sandbox.sandboxId, forked?.sandbox.sandboxID ?? ""]) {
      const held = await connect(id);
      expect(await opened(held)).toBe(CONNECTIONS);
      expect(await seconds(held, "down")).toBeGreaterThan(LEAST_SECONDS);
      await held.kill();
    }
    // The next sandboxes get the slots without the limits.
    for (const free of [await create(), await create()]) {
      expect(await opened(free)).toBe(2 * CONNECTIONS);
      expect(await seconds(free, "down")).toBeLessThan(LEAST_SECONDS);
      await free.kill();
    }
  });

  it("come from the template and from the team, and a caller stays below them", async () => {
    const template = await callApi(platform, "/v2/templates/base", {
      method: "PATCH",
      body: { networkLimits: { connections: CONNECTIONS } },
    });
    expect(template.status).toBe(200);
    const { body: templates } = await callApi(platform, "/templates");
    expect(templates).toContainEqual(expect.objectContaining({ aliases: ["base"], networkLimits: { connections: CONNECTIONS } }));
    const sandbox = await create();
    expect(await opened(sandbox)).toBe(CONNECTIONS);
    await sandbox.kill();
    const own = await create({ connections: 3 });
    expect(await opened(own)).toBe(3);
    await own.kill();
    await callApi(platform, "/v2/templates/base", { method: "PATCH", body: { networkLimits: null } });

    expect((await setTeamLimits({ sandboxBandwidthMbps: MBPS, sandboxConnections: CONNECTIONS })).status).toBe(200);
    const ofTeam = await create();
    expect(await networkOf(ofTeam)).toBeUndefined();
    expect(await opened(ofTeam)).toBe(CONNECTIONS);
    expect(await seconds(ofTeam, "down")).toBeGreaterThan(LEAST_SECONDS);
    for (const limits of [{ bandwidthMbps: MBPS + 1 }, { connections: CONNECTIONS + 1 }]) {
      const [name] = Object.keys(limits);
      const text = new RegExp(`network.limits.${name} cannot be greater than 8, which is your team's limit sandbox`);
      expect(await ask({ network: { limits } })).toMatchObject({ status: 400, body: { message: expect.stringMatching(text) } });
      expect(await change(ofTeam, { limits })).toMatchObject({ status: 400, body: { message: expect.stringMatching(text) } });
    }
    await ofTeam.kill();
    await setTeamLimits({});
    for (const limits of [{ bandwidthMbps: 0 }, { connections: "8" }, { connections: 1.5 }, { other: 1 }, [], 8]) {
      expect((await ask({ network: { limits } })).status).toBe(400);
    }
  });
});

/** Echoes a greeting, then sends as many bytes as it is asked for, and tells how many it got. */
const SERVER = `
import socket, threading
def serve(peer):
    with peer:
        reader = peer.makefile("rb")
        line = reader.readline().split()
        if not line: return
        if line[0] == b"down": peer.sendall(bytes(int(line[1])))
        else:
            left = int(line[1])
            while left > 0:
                got = reader.read(min(left, 65536))
                if not got: return
                left -= len(got)
            peer.sendall(b"done")
listener = socket.create_server(("0.0.0.0", ${PORT}), backlog=256)
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`;

const inQuotes = (program: string) => program.replaceAll("'", '"');

const OPEN = inQuotes(`
import socket, sys, threading, time
address, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
held = []
def open_one():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM); s.settimeout(4)
    try:
        s.connect((address, ${PORT} if kind == "tcp" else 8099))
        if kind == "udp": s.send(b"hello"); s.recv(64)
        held.append(s)
    except OSError: s.close()
threads = [threading.Thread(target=open_one) for _ in range(count)]
for thread in threads: thread.start(); time.sleep(0.02)
for thread in threads: thread.join()
print(len(held))
for s in held: s.close()
time.sleep(1)`);

const TRANSFER = inQuotes(`
import socket, sys, time
address, direction, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.create_connection((address, ${PORT}))
start = time.monotonic()
s.sendall(f"{direction} {size}\\n".encode())
if direction == "up":
    s.sendall(bytes(size)); assert s.recv(16) == b"done"
else:
    got = 0
    while got < size: got += len(s.recv(65536))
print(time.monotonic() - start)`);

const FLOOD = inQuotes(`
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try: s.sendto(bytes(1400), (sys.argv[1], 9))
    except OSError: pass`);
