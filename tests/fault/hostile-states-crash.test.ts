// Open deleted files that are so large that gVisor exceeds the sandbox's memory limit when it saves them.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cgroupRoots } from "@skerry/runtime";
import { type Platform, startPlatform } from "@skerry/testkit";
import { sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { allOk, HostileGuest } from "./hostile-states/hostile-guest.ts";

const MIB = 1024 * 1024;
/** The limit that the host enforces for a sandbox with 512 MiB: 128 MiB more for gVisor and the agent, and a reserve of 1,024. */
const OWN_LIMIT = (512 + 128 + 1024) * MIB;
const NAMES = ["deleted_large", "deleted_small", "pipe"];

interface ContainerRecord {
  readonly sandboxId: string;
  readonly cgroupPath: string;
  readonly extraMemoryBytes?: number;
}

/** Most cases take about a minute, so a sample has only the one that saves least. */
const CASES: Record<string, () => Promise<void>> = {};

describe("a large deleted file that is open", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ runtime: "gvisor" });
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const recordOf = (id: string): ContainerRecord | undefined => {
    const dir = join(platform.dataDir, "node/sandboxes");
    const files = readdirSync(dir).map((name) => join(dir, name, "sandbox.json"));
    const records = files.filter((file) => existsSync(file)).map((file) => JSON.parse(readFileSync(file, "utf8")) as ContainerRecord);
    return records.find(({ sandboxId }) => sandboxId === id);
  };
  const limitOf = (id: string) => {
    const names = ["memory.max", "memory.limit_in_bytes"];
    const files = cgroupRoots().flatMap((root) => names.map((name) => join(root, recordOf(id)?.cgroupPath ?? "", name)));
    return Number(readFileSync(files.find((file) => existsSync(file)) ?? "", "utf8"));
  };
  const hasOwnLimits = async (id: string) => {
    await waitUntil("its limits are its own", () => recordOf(id)?.extraMemoryBytes === undefined && limitOf(id) === OWN_LIMIT, 120_000);
  };
  const post = (id: string, what: string, body: object = {}) => callApi(platform, `/sandboxes/${id}/${what}`, { method: "POST", body });
  const start = async (bytes: number) => {
    const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs: 3_000_000 });
    const guest = await HostileGuest.start(sandbox, { LARGE_BYTES: String(bytes) });
    expect(await guest.make(...NAMES)).toEqual(allOk(NAMES));
    return guest;
  };

  CASES["of 100 MB is kept by a pause, with more memory than the sandbox may have, which it gives back"] = async () => {
    const guest = await start(100_000_000);
    const { sandboxId } = guest.sandbox;
    expect(await post(sandboxId, "pause")).toMatchObject({ status: 204 });
    const connected = await post(sandboxId, "connect", { timeout: 3_000 });
    expect(connected).toMatchObject({ status: 201 });
    expect(connected.headers.get("skerry-memory-lost")).toBeNull();
    expect(limitOf(sandboxId)).toBeGreaterThan(OWN_LIMIT);
    expect(await guest.check()).toEqual(allOk(NAMES));
    await hasOwnLimits(sandboxId);
    expect(await guest.check()).toEqual(allOk(NAMES));
    await guest.sandbox.kill();
  };

  CASES["or as much in the queues of pipes and sockets is kept by a pause and a snapshot"] = async () => {
    const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs: 3_000_000 });
    const { sandboxId } = sandbox;
    const guest = await HostileGuest.start(sandbox, { LARGE_QUEUES: "240" });
    expect(await guest.make("large_queues")).toEqual(allOk(["large_queues"]));
    expect(await post(sandboxId, "pause")).toMatchObject({ status: 204 });
    expect((await post(sandboxId, "connect", { timeout: 3_000 })).headers.get("skerry-memory-lost")).toBeNull();
    expect(await guest.check()).toEqual(allOk(["large_queues"]));
    expect(await post(sandboxId, "snapshots")).toMatchObject({ status: 201 });
    expect(await guest.check()).toEqual(allOk(["large_queues"]));
    await sandbox.kill();
  };

  CASES["and a daemon that is killed while it is saved cost nothing"] = async () => {
    const guest = await start(24 * MIB);
    const { sandboxId } = guest.sandbox;
    for (const what of ["pause", "snapshots"]) {
      const interrupted = post(sandboxId, what).catch(() => undefined);
      await waitUntil("its limits are raised", () => limitOf(sandboxId) > OWN_LIMIT, 60_000);
      await platform.kill9();
      await interrupted;
      expect(limitOf(sandboxId)).toBeGreaterThan(OWN_LIMIT);
      await platform.start();
      const state = async () => (await callApi(platform, `/sandboxes/${sandboxId}`)).body;
      await waitUntil("it runs on", async () => ((await state()) as { state: string }).state === "running", 60_000);
      expect(await guest.check()).toEqual(allOk(NAMES));
      await hasOwnLimits(sandboxId);
    }
    await guest.sandbox.kill();
  };

  CASES["beside what only gVisor can refuse leaves the limits as they were"] = async () => {
    const guest = await start(8 * MIB);
    await guest.make("refused_fifo");
    const { sandboxId } = guest.sandbox;
    expect(await post(sandboxId, "pause")).toMatchObject({ status: 422, body: { message: expect.stringContaining("refused_fifo") } });
    await hasOwnLimits(sandboxId);
    expect(await guest.check()).toEqual(allOk([...NAMES, "refused_fifo"]));
    await guest.sandbox.kill();
  };

  CASES["is paused without its memory when its time is over and it can't be saved, and the answer says why"] = async () => {
    const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs: 3_000_000, lifecycle: { onTimeout: "pause" } });
    const guest = await HostileGuest.start(sandbox);
    await guest.make("refused_hole");
    await sandbox.setTimeout(1_000);
    const detail = async () => (await callApi(platform, `/sandboxes/${sandbox.sandboxId}`)).body as { pauseMode?: string };
    // During the attempt the state is already "paused". Afterwards the sandbox runs again.
    await waitUntil("it is paused", async () => (await detail()).pauseMode === "filesystem", 150_000);
    const connected = await post(sandbox.sandboxId, "connect", { timeout: 600 });
    expect(connected).toMatchObject({ status: 201 });
    expect(connected.headers.get("skerry-memory-lost")).toMatch(/refused_hole/);
    expect((await sandbox.commands.run("ls /root/guest.py", { user: "root" })).stdout).toBe("/root/guest.py\n");
    await sandbox.kill();
  };

  const cases = sampleOf("tests of large deleted files", Object.keys(CASES), (name) => name.startsWith("beside"));
  it.each(cases)("%s", async (name) => await CASES[name]?.());
});
