// Images that are damaged on disk, or that this machine can no longer restore. Also a disk that fills up, and simultaneous calls for one
// sandbox or one image.

import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { sampleOf, scaled } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";

/** The state of each thread of a process, as the kernel abbreviates it. The name before it may hold anything. */
const threadStates = (pid: number) =>
  readdirSync(`/proc/${pid}/task`).map((thread) => readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8").replace(/^.*\) /s, "")[0]);

let count = 0;
const newId = (letter: string, length: number) => {
  count += 1;
  return `${letter}${String(count).padStart(length - 1, "0")}`;
};

const callsOf = (node: () => ChildNode) => {
  const marked = async (overrides: object = {}) => {
    const id = newId("i", 21);
    await node().client.createSandbox({ spec: node().spec(id, overrides) });
    await node().writeFile(id, "/root/file", "disk");
    await node().writeFile(id, "/dev/shm/memory", "memory");
    return id;
  };
  const pause = (sandboxId: string, imageId: string) => node().client.pauseSandbox({ sandboxId, imageId, memory: true });
  return {
    marked,
    pause,
    paused: async () => {
      const id = await marked();
      const imageId = newId("m", 20);
      await pause(id, imageId);
      return { id, imageId };
    },
    resume: (id: string, imageId: string) => node().client.resumeSandbox({ spec: node().spec(id, { imageId }) }),
    marksOf: async (id: string, token = "a-token") => [
      await node().readFile(id, "/root/file", token),
      await node().readFile(id, "/dev/shm/memory", token),
    ],
  };
};

describe("on gvisor", () => {
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime: "gvisor" });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  afterEach(() => node.empty());
  const { marked, pause, paused, resume, marksOf } = callsOf(() => node);

  const memoryFile = (imageId: string) => {
    const dir = join(node.dir, "images", imageId, "memory");
    const names = readdirSync(dir).sort((a, b) => statSync(join(dir, b)).size - statSync(join(dir, a)).size);
    return join(dir, names[0] ?? "");
  };
  const changeRecord = async (imageId: string, change: (record: { memory: { binary: string; cpuFeatures: string[] } }) => void) => {
    const file = join(node.dir, "images", imageId, "image.json");
    await node.stop();
    const record = JSON.parse(readFileSync(file, "utf8"));
    change(record);
    writeFileSync(file, JSON.stringify(record));
    await node.up();
  };
  const flip = (file: string) => {
    const bytes = readFileSync(file);
    const at = Math.floor(bytes.length / 2);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(file, bytes);
  };

  it.each<[string, RegExp, (imageId: string) => unknown]>([
    ["a truncated memory file", /bytes of/, (imageId) => truncateSync(memoryFile(imageId), 4096)],
    ["an empty memory file", /0 bytes of/, (imageId) => truncateSync(memoryFile(imageId), 0)],
    ["one flipped bit in its memory", /has changed/, (imageId) => flip(memoryFile(imageId))],
    ["a missing memory file", /can't be read/, (imageId) => rmSync(memoryFile(imageId))],
    ["no memory folder", /can't be read/, (imageId) => rmSync(join(node.dir, "images", imageId, "memory"), { recursive: true })],
    [
      "a runsc that is gone",
      /which this machine no longer has/,
      (imageId) =>
        changeRecord(imageId, ({ memory }) => {
          memory.binary = "runsc-gone";
        }),
    ],
    [
      "a processor that this machine has not",
      /which this one lacks/,
      (imageId) =>
        changeRecord(imageId, ({ memory }) => {
          memory.cpuFeatures.push("feature_of_tomorrow");
        }),
    ],
  ])("a sandbox paused to an image with %s boots from its disk, and it is said why", async (_what, reason, damage) => {
    const { id, imageId } = await paused();
    await damage(imageId);
    const resumed = await resume(id, imageId);
    expect(resumed).toMatchObject({ startKind: StartKind.BOOT, memoryLostReason: expect.stringMatching(reason) });
    // Also for a caller that missed the response: it is in a repeated response and in the list.
    expect(await resume(id, imageId)).toEqual(resumed);
    const { memoryLostReason } = resumed;
    expect((await node.client.listSandboxes({})).sandboxes).toMatchObject([{ sandboxId: id, memoryLostReason }]);
    expect(await marksOf(id)).toEqual(["disk", 404]);
  });

  it.each<[string, (imageId: string) => void]>([
    ["no record", (imageId) => rmSync(join(node.dir, "images", imageId, "image.json"))],
    ["nothing at all", (imageId) => rmSync(join(node.dir, "images", imageId), { recursive: true })],
  ])("an image with %s is none after a restart, and can be deleted", async (_what, damage) => {
    const { id, imageId } = await paused();
    await node.stop();
    damage(imageId);
    await node.up();
    await expect(resume(id, imageId)).rejects.toThrow(/not on this machine/);
    await node.client.deleteImage({ imageId });
  });

  it("an image with an unreadable record is listed and can only be deleted, and no disk counts as unused while it exists", async () => {
    const { id, imageId } = await paused();
    await node.stop();
    const file = join(node.dir, "images", imageId, "image.json");
    const { area } = JSON.parse(readFileSync(file, "utf8")).local as { area: string };
    truncateSync(file, 20);
    await node.up();
    expect(await node.images()).toEqual([imageId]);
    await expect(resume(id, imageId)).rejects.toThrow(/the record of image .* can't be read/);
    expect(existsSync(join(node.dir, "areas", area))).toBe(true);
    await node.client.deleteImage({ imageId });
    expect(existsSync(join(node.dir, "images", imageId))).toBe(false);
    await node.stop();
    await node.up();
    expect(existsSync(join(node.dir, "areas", area))).toBe(false);
  });

  it("an image whose disk is gone can't be resumed, and can be deleted", async () => {
    const { id, imageId } = await paused();
    await node.stop();
    const { area } = JSON.parse(readFileSync(join(node.dir, "images", imageId, "image.json"), "utf8")).local as { area: string };
    await runCommand("umount", ["--lazy", join(node.dir, "areas", area, "fs")]).catch(() => {});
    rmSync(join(node.dir, "areas", area), { recursive: true });
    await node.up();
    await expect(resume(id, imageId)).rejects.toThrow();
    expect(await node.images()).toEqual([imageId]);
    expect(await node.client.deleteImage({ imageId })).toMatchObject({ existed: true });
  });

  it("a sandbox whose agent does not answer is not paused unless that is permitted, and keeps running", async () => {
    const id = await marked();
    const agent = Number(JSON.parse(readFileSync(join(node.dir, "sandboxes", id, "sandbox.json"), "utf8")).process.pid);
    // A guest cannot stop process 1, but the host can. Then nothing in the sandbox responds.
    process.kill(agent, "SIGSTOP");
    // On a busy host, threads may run on for some milliseconds until the kernel has stopped them all.
    await waitUntil("every thread of the sandbox is stopped", () => threadStates(agent).every((state) => state === "T"));
    const request = { sandboxId: id, imageId: newId("m", 20), memory: true, requireHealthyGuest: true };
    await expect(node.client.pauseSandbox(request)).rejects.toThrow(/does not answer/);
    await expect(node.client.pauseSandbox({ ...request, memory: false, requireHealthyGuest: false })).rejects.toThrow(/does not answer/);
    process.kill(agent, "SIGCONT");
    expect(await marksOf(id)).toEqual(["disk", "memory"]);
  });

  const OPERATIONS = ["pause", "resume", "snapshot", "kill"] as const;
  const PAIRS = sampleOf(
    "pairs of calls at once for one sandbox",
    OPERATIONS.flatMap((first) => OPERATIONS.map((second) => [first, second] as const)),
    // Each operation is once the first of two and once the second.
    ([first, second]) => OPERATIONS.indexOf(second) === (OPERATIONS.indexOf(first) + 1) % OPERATIONS.length,
  );
  const STATES = sampleOf("states of a sandbox with calls at once", ["running", "paused"] as const, (state) => state === "paused");
  const PAUSED = scaled("sandboxes that are paused when a node is killed", { sample: 3, full: 20 });
  it.each(STATES)("any two simultaneous calls for a %s sandbox leave it complete and unique", async (state) => {
    for (const pair of PAIRS) {
      const id = await marked();
      const imageId = newId("m", 20);
      if (state === "paused") await pause(id, imageId);
      const snapshots: string[] = [];
      const call = async (operation: (typeof OPERATIONS)[number]) => {
        if (operation === "pause") await pause(id, newId("m", 20));
        if (operation === "resume") await resume(id, imageId);
        if (operation === "kill") await node.client.killSandbox({ sandboxId: id });
        if (operation !== "snapshot") return;
        const sourceImageId = (await node.images()).includes(imageId) ? imageId : "";
        const snapshot = newId("m", 20);
        await node.client.snapshotSandbox({ sandboxId: id, imageId: snapshot, memory: true, sourceImageId });
        snapshots.push(snapshot);
      };
      await Promise.allSettled(pair.map(call));
      const runs = (await node.running()).includes(id);
      const pauses = (await node.images()).filter((image) => !snapshots.includes(image));
      const wasKilled = pair.includes("kill");
      if (!wasKilled) expect([runs, pauses.length], pair.join(" and ")).toEqual(runs ? [true, 0] : [false, 1]);
      if (!runs && pauses[0] !== undefined) await resume(id, pauses[0]);
      if (runs || pauses.length > 0) expect(await marksOf(id), pair.join(" and ")).toEqual(["disk", "memory"]);
      for (const image of snapshots) {
        const other = newId("i", 21);
        await node.client.createSandbox({ spec: node.spec(other, { imageId: image, accessToken: "b" }) });
        expect(await marksOf(other, "b")).toEqual(["disk", "memory"]);
      }
      await node.empty();
    }
  });

  it("deletes an image while sandboxes start from it: each is complete or was refused", async () => {
    const id = await marked();
    const imageId = newId("m", 20);
    await node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true });
    const ids = Array.from({ length: 5 }, () => newId("i", 21));
    const spec = (one: string) => node.spec(one, { imageId, accessToken: "b" });
    const starts = ids.map((one) => node.client.createSandbox({ spec: spec(one) }));
    const deleted = node.client.deleteImage({ imageId });
    const results = await Promise.allSettled(starts);
    expect(await deleted).toMatchObject({ existed: true });
    expect(await node.images()).toEqual([]);
    for (const [at, result] of results.entries()) {
      if (result.status === "fulfilled") expect(await marksOf(ids[at] ?? "", "b")).toEqual(["disk", "memory"]);
      else expect(String(result.reason)).toMatch(/deleted|not on this machine/);
    }
    expect((await node.running()).length).toBe(1 + results.filter(({ status }) => status === "fulfilled").length);
    expect(await marksOf(id)).toEqual(["disk", "memory"]);
  });

  it(`has ${PAUSED} paused sandboxes after a SIGKILL, and they use no memory and no network`, async () => {
    const all: { id: string; imageId: string }[] = [];
    for (let at = 0; at < PAUSED; at += 1) all.push(await paused());
    await node.kill9();
    await node.up();
    expect((await node.images()).toSorted()).toEqual(all.map(({ imageId }) => imageId).toSorted());
    expect(await node.running()).toEqual([]);
    expect(node.processes()).toEqual([]);
    expect(node.namespaces().length).toBeLessThanOrEqual(2);
    for (const { id, imageId } of [all[0], all[Math.floor(PAUSED / 2)], all[PAUSED - 1]].filter((one) => one !== undefined)) {
      expect(await resume(id, imageId)).toMatchObject({ startKind: StartKind.RESTORE });
      expect(await marksOf(id)).toEqual(["disk", "memory"]);
    }
  });
});

describe("on a disk that fills up", () => {
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime: "gvisor", diskMb: 3072 });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  const { marked, pause, resume, marksOf } = callsOf(() => node);

  it("a pause and a snapshot without enough space fail, the sandbox keeps running, and both work once there is space", async () => {
    const id = await marked();
    for (let at = 0; at < 6; at += 1) await node.writeFile(id, `/dev/shm/${at}`, randomBytes(10 * 2 ** 20).toString("base64"));
    const free = Number((await runCommand("df", ["--output=avail", "--block-size=1M", node.dir])).stdout.split("\n")[1]);
    const filler = join(node.dir, "filler");
    await runCommand("fallocate", ["--length", `${free - 30}MiB`, filler]);
    const imageId = newId("m", 20);
    await expect(pause(id, imageId)).rejects.toThrow(/disk of the machine is full/);
    await expect(node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true })).rejects.toThrow(/not enough free disk space/);
    expect(await node.images()).toEqual([]);
    expect(await marksOf(id)).toEqual(["disk", "memory"]);
    await node.writeFile(id, "/root/file", "still writable");
    rmSync(filler);
    await pause(id, imageId);
    await resume(id, imageId);
    expect(await marksOf(id)).toEqual(["still writable", "memory"]);
    await node.empty();
  });
});
