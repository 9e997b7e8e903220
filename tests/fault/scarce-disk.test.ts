// Every operation of a node while its own disk or a sandbox's disk is full. It is refused or completed, and nothing is lost.

import { appendFileSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { runCommand } from "@skerry/base";
import { runtimesFor, sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { StartKind } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";
import { leave, untilFull } from "./node/full-disk.ts";

const MIB = 2 ** 20;
const RESERVE = 1024 * MIB;
const RUNTIMES = runtimesFor("operations on disks without room");
type Runtime = (typeof RUNTIMES)[number];

let count = 0;
const newId = (letter: string, length: number) => {
  count += 1;
  return `${letter}${String(count).padStart(length - 1, "0")}`;
};

/** Actions of the tests on the sandboxes of a node. */
function sandboxesOf(node: () => ChildNode, runtime: Runtime) {
  const marked = async (): Promise<string> => {
    const id = newId("i", 21);
    await node().client.createSandbox({ spec: node().spec(id) });
    await node().writeFile(id, "/root/file", `disk of ${id}`);
    await node().writeFile(id, "/dev/shm/memory", `memory of ${id}`);
    return id;
  };
  const pause = (id: string, imageId: string, memory = true) => node().client.pauseSandbox({ sandboxId: id, imageId, memory });
  const resume = (id: string, imageId: string) => node().client.resumeSandbox({ spec: node().spec(id, { imageId }) });
  const snapshot = (id: string, imageId: string, sourceImageId = "") =>
    node().client.snapshotSandbox({ sandboxId: id, imageId, memory: true, sourceImageId });
  /** `memory` says whether the sandbox kept running, or went through an operation that keeps memory if the runtime can. */
  const expectMarks = async (id: string, { of = id, memory = "kept", token = "a-token" } = {}) => {
    expect(await node().readFile(id, "/root/file", token)).toBe(`disk of ${of}`);
    const isLost = memory === "lost" || (memory === "of an image" && runtime === "runc");
    expect(await node().readFile(id, "/dev/shm/memory", token)).toBe(isLost ? 404 : `memory of ${of}`);
  };
  return { marked, pause, resume, snapshot, expectMarks };
}

const refusal = async (work: Promise<unknown>): Promise<ConnectError> => {
  const error = await work.then(
    () => expect.fail("it was not refused"),
    (cause: unknown) => ConnectError.from(cause),
  );
  expect(error).toMatchObject({ code: Code.ResourceExhausted, rawMessage: expect.stringMatching(/disk/) });
  expect(error.rawMessage).not.toMatch(/ENOSPC|\/areas\//);
  return error;
};

describe.each(RUNTIMES)("the host's disk, on %s", (runtime) => {
  const LEVELS = {
    "no byte": 0,
    "a little less than the reserve": RESERVE - 8 * MIB,
    "a little more than the reserve": RESERVE + 16 * MIB,
  };
  type Level = keyof typeof LEVELS;
  // On runc a snapshot of a paused sandbox copies its disk.
  const NEW = ["create", "snapshot", "fork", ...(runtime === "runc" ? ["snapshot of a paused one"] : [])];
  const WITHOUT = ["kill", "delete an image"];
  const OPERATIONS = ["create", "pause", "resume", "snapshot", "snapshot of a paused one", "fork", "kill", "delete an image"] as const;
  type Operation = (typeof OPERATIONS)[number];
  const outcomeOf = (operation: Operation, level: Level): "done" | "refused" | "either" => {
    if (WITHOUT.includes(operation) || level === "a little more than the reserve") return "done";
    if (NEW.includes(operation)) return "refused";
    return level === "no byte" ? "either" : "done";
  };
  const LESS: Level = "a little less than the reserve";
  const SAMPLE: Partial<Record<Operation, Level>> = { pause: "no byte", snapshot: LESS, kill: "no byte" };
  const CASES = sampleOf(
    `operations of a node on a full disk, on ${runtime}`,
    OPERATIONS.flatMap((operation) => (Object.keys(LEVELS) as Level[]).map((level) => ({ operation, level }))),
    ({ operation, level }) => SAMPLE[operation] === level,
  );

  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime, diskMb: 3072 });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  afterEach(async () => {
    await leave(node.dir, 2 * RESERVE);
    await node.empty();
  });
  const { marked, pause, resume, snapshot, expectMarks } = sandboxesOf(() => node, runtime);

  /** The preparation, the operation, and the checks after success and after a refusal. */
  const scenes: Record<
    Operation,
    () => Promise<{ work: () => Promise<unknown>; before?: () => Promise<void>; after: () => Promise<void> }>
  > = {
    async create() {
      const id = newId("i", 21);
      return { work: () => node.client.createSandbox({ spec: node.spec(id) }), after: () => node.writeFile(id, "/root/file", "it works") };
    },
    async pause() {
      const [id, imageId] = [await marked(), newId("m", 20)];
      const after = async () => {
        await resume(id, imageId);
        await expectMarks(id, { memory: "of an image" });
      };
      return { work: () => pause(id, imageId), before: () => expectMarks(id), after };
    },
    async resume() {
      const [id, imageId] = [await marked(), newId("m", 20)];
      await pause(id, imageId);
      const before = async () => expect(await node.images()).toContain(imageId);
      return { work: () => resume(id, imageId), before, after: () => expectMarks(id, { memory: "of an image" }) };
    },
    async snapshot() {
      const [id, imageId] = [await marked(), newId("m", 20)];
      return { work: () => snapshot(id, imageId), before: () => expectMarks(id), after: () => expectMarks(id) };
    },
    async "snapshot of a paused one"() {
      const [id, source, imageId] = [await marked(), newId("m", 20), newId("m", 20)];
      await pause(id, source);
      const before = async () => expect(await node.images()).toEqual([source]);
      const after = async () => {
        await leave(node.dir, 2 * RESERVE);
        await resume(id, source);
        await expectMarks(id, { memory: "of an image" });
      };
      return { work: () => snapshot(id, imageId, source), before, after };
    },
    async fork() {
      const [id, imageId, other] = [await marked(), newId("m", 20), newId("i", 21)];
      await snapshot(id, imageId);
      const work = () => node.client.createSandbox({ spec: node.spec(other, { imageId, accessToken: "b" }) });
      const after = async () => {
        await expectMarks(other, { of: id, memory: "of an image", token: "b" });
        await expectMarks(id);
      };
      return { work, before: () => expectMarks(id), after };
    },
    async kill() {
      const id = await marked();
      const after = async () => expect(await node.running()).toEqual([]);
      return { work: () => node.client.killSandbox({ sandboxId: id }), after };
    },
    async "delete an image"() {
      const [id, imageId] = [await marked(), newId("m", 20)];
      await pause(id, imageId);
      const after = async () => expect(await node.images()).toEqual([]);
      return { work: () => node.client.deleteImage({ imageId }), after };
    },
  };

  it.each(CASES)("$operation with $level free", async ({ operation, level }) => {
    await leave(node.dir, 2 * RESERVE);
    const { work, before, after } = await scenes[operation]();
    await leave(node.dir, LEVELS[level]);
    const outcome = outcomeOf(operation, level);
    if (outcome === "done") {
      await work();
      await after();
      return;
    }
    const attempt = work();
    const isRefused = outcome === "refused" || (await attempt.then(() => false).catch(() => true));
    if (isRefused) {
      await refusal(attempt);
      await before?.();
    }
    await leave(node.dir, 2 * RESERVE);
    if (isRefused) {
      await before?.();
      await work();
    }
    await after();
  });
});

describe("the host's disk, after a crash during a snapshot", () => {
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime: "gvisor", diskMb: 3072 });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  const AFTER = ["write.committed", "snapshot.predecessor-ended", "start.area-made", "start.started"] as const;
  const CASES = sampleOf("crashes of a snapshot after which the disk is full", AFTER, (point) => point === "snapshot.predecessor-ended");

  it.each(CASES)("a sandbox keeps its memory although no new operation may start: at %s", async (point) => {
    await leave(node.dir, 2 * RESERVE);
    const { marked, snapshot, expectMarks } = sandboxesOf(() => node, "gvisor");
    const id = await marked();
    await node.arm(point);
    await expect(snapshot(id, newId("m", 20))).rejects.toThrow();
    expect(await node.exited()).toBe("SIGKILL");
    await leave(node.dir, RESERVE / 2);
    await node.up();
    await expectMarks(id);
    await leave(node.dir, 2 * RESERVE);
    await node.empty();
  });
});

describe("the host's disk, with ready sandboxes", () => {
  it("refuses a create below the reserve too, and lets one claim a ready sandbox above it", async () => {
    await using node = await ChildNode.start({ runtime: "gvisor", diskMb: 3072, poolSize: 1 });
    const { marked } = sandboxesOf(() => node, "gvisor");
    await marked();
    await waitUntil("one is ready", () => node.ready() > 0);
    const spec = node.spec(newId("i", 21));
    await leave(node.dir, RESERVE - 8 * MIB);
    await refusal(node.client.createSandbox({ spec }));
    await leave(node.dir, 2 * RESERVE);
    expect(await node.client.createSandbox({ spec })).toMatchObject({ startKind: StartKind.CLAIM });
  });
});

describe.each(RUNTIMES)("a sandbox's own disk, on %s", (runtime) => {
  let node: ChildNode;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  afterEach(() => node.empty());
  const { marked, pause, resume, snapshot, expectMarks } = sandboxesOf(() => node, runtime);

  const recordOf = (id: string) => {
    const records = readdirSync(join(node.dir, "sandboxes")).map(
      (name) => JSON.parse(readFileSync(join(node.dir, "sandboxes", name, "sandbox.json"), "utf8")) as Record<string, string>,
    );
    return records.find(({ sandboxId }) => sandboxId === id) ?? expect.fail(`no record of ${id}`);
  };
  /** The sandbox's files, as seen from inside. */
  const rootOf = (id: string) => join(node.dir, "sandboxes", recordOf(id).containerId ?? "", "root");
  const areaOf = (id: string) => join(node.dir, "areas", recordOf(id).area ?? "", "fs");

  const filler = (id: string) => join(rootOf(id), "filler");
  const SCARCE: Record<string, { take(id: string): unknown; give(id: string): Promise<void> }> = {
    full: {
      take: (id) => {
        mkdirSync(filler(id));
        untilFull(() => appendFileSync(join(filler(id), "big"), Buffer.alloc(MIB)));
        untilFull(() => appendFileSync(join(filler(id), "rest"), Buffer.alloc(4096)));
      },
      give: async (id) => rmSync(filler(id), { recursive: true }),
    },
    "out of inodes": {
      take: (id) => {
        mkdirSync(filler(id));
        untilFull((at) => writeFileSync(join(filler(id), String(at)), ""));
      },
      give: async (id) => rmSync(filler(id), { recursive: true }),
    },
    // As after an error of the host's disk: data that was synced before is there at the next mount.
    "read-only": {
      take: async (id) => {
        await runCommand("sync", ["--file-system", areaOf(id)]);
        const { dev } = statSync(areaOf(id));
        const device = basename(readlinkSync(`/sys/dev/block/${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`));
        writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, "a test");
      },
      give: async (id) => {
        const imageId = newId("m", 20);
        await pause(id, imageId);
        await resume(id, imageId);
      },
    },
  };
  const OPERATIONS = ["pause and resume", "pause and resume without memory", "snapshot", "fork", "kill"] as const;
  const CASES = sampleOf(
    `operations with a sandbox whose own disk has no room, on ${runtime}`,
    OPERATIONS.flatMap((operation) => Object.keys(SCARCE).map((what) => ({ operation, what }))),
    ({ operation, what }) =>
      (operation === "pause and resume" && what !== "out of inodes") || (operation === "snapshot" && what === "full"),
  );

  it.each(CASES)("$operation when it is $what", async ({ operation, what }) => {
    const id = await marked();
    await SCARCE[what]?.take(id);
    const imageId = newId("m", 20);
    const other = newId("i", 21);
    let memory = "kept";
    if (operation.startsWith("pause")) {
      memory = operation.endsWith("without memory") ? "lost" : "of an image";
      await pause(id, imageId, memory !== "lost");
      await resume(id, imageId);
    } else if (operation === "kill") {
      await node.client.killSandbox({ sandboxId: id });
      return;
    } else await snapshot(id, imageId);
    await expectMarks(id, { memory });
    if (operation === "fork") {
      await node.client.createSandbox({ spec: node.spec(other, { imageId, accessToken: "b" }) });
      await expectMarks(other, { of: id, memory: "of an image", token: "b" });
    }
    // A boot may have freed an inode.
    if (what === "full") await expect(node.writeFile(id, "/root/more", "x".repeat(2 * MIB))).rejects.toThrow(/answered 507/);
    await SCARCE[what]?.give(id);
    // Deleted files use space in a frozen area until that is merged, at the next snapshot but one.
    if (operation === "snapshot" || operation === "fork") for (let at = 0; at < 2; at += 1) await snapshot(id, newId("m", 20));
    await node.writeFile(id, "/root/more", "x".repeat(2 * MIB));
    await expectMarks(id, { memory: what === "read-only" && memory === "kept" ? "of an image" : memory });
  });
});
