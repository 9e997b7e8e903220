// Operations on volumes while the host's disk is full, or the node has no free descriptors, processes or loop devices. Each one is completed or
// refused, and never half done. What a caller was told is stored is there, and everything works once there is enough again.

import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { sampleOf } from "@skerry/testkit/depth";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";
import { leave } from "./node/full-disk.ts";
import { type During, ProcessLimit, withoutLoopDevices, withSpareDescriptors } from "./node/scarcity.ts";
import { volumeCallsOf } from "./node/volume-calls.ts";

const OPERATIONS = ["create", "delete", "upload", "download", "mount", "write inside"] as const;
type Operation = (typeof OPERATIONS)[number];
const GIB = 2 ** 30;
const [OLD, NEW] = ["old".repeat(100_000), "new".repeat(1_000_000)];
const [OLD_SHORT, NEW_SHORT] = ["old", "new"];

let count = 0;
const newId = () => {
  count += 1;
  return `i${String(count).padStart(20, "0")}`;
};

let node: ChildNode;
let limit: ProcessLimit;
beforeAll(async () => {
  node = await ChildNode.start({ runtime: "gvisor", ownMounts: true, diskMb: 3072 });
  limit = new ProcessLimit(node);
});
afterAll(async () => {
  await limit?.[Symbol.asyncDispose]();
  await node?.[Symbol.asyncDispose]();
});
afterEach(async () => {
  await leave(node.dir, 2 * GIB);
  await node.empty();
});
const volumes = volumeCallsOf(() => node);

async function startWith(volumeId: string): Promise<string> {
  const id = newId();
  await node.client.createSandbox({ spec: node.spec(id, { volumeMounts: [{ volumeId, path: "/data" }] }) });
  return id;
}

/** Whether the operation was done. Its refusal says what is missing or that nothing was done, without the words of a system call. */
async function isDone(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    expect(ConnectError.from(error).rawMessage).not.toMatch(/\b(EMFILE|ENFILE|EAGAIN|ENOMEM|ENOSPC|EIO|ENOTTY|ioctl|spawn)\b/);
    return false;
  }
}

/** Returns whether the operation was done while something was missing. */
async function proves(operation: Operation, during: During, enough: () => Promise<void> = async () => {}): Promise<boolean> {
  const volumeId = randomUUID();
  await volumes.create(volumeId);
  await volumes.write(volumeId, OLD);
  const user = await startWith(volumeId);
  const tried = (work: () => Promise<unknown>) => during(() => isDone(work));
  const other = randomUUID();
  let content = OLD;
  let done: boolean;
  switch (operation) {
    case "create":
      done = await tried(() => volumes.create(other));
      await enough();
      // A process may have ended between the volume's making and the answer.
      expect(await volumes.create(other)).toBe(!done);
      await volumes.write(other, NEW);
      expect(await volumes.read(other)).toBe(NEW);
      break;
    case "delete":
      await volumes.create(other);
      done = await tried(() => volumes.delete(other));
      await enough();
      expect(await volumes.delete(other)).toBe(!done);
      expect(await volumes.ids()).toEqual([volumeId]);
      break;
    case "upload":
      done = await tried(() => volumes.write(volumeId, NEW));
      if (done) content = NEW;
      break;
    case "download":
      done = await tried(async () => expect(await volumes.read(volumeId)).toBe(OLD));
      break;
    case "mount":
      done = await tried(() => startWith(volumeId));
      break;
    case "write inside":
      done = await tried(() => node.writeFile(user, "/data/f", NEW));
      await enough();
      // On a disk that fails, a guest's own write may have taken place or not.
      content = await volumes.read(volumeId);
      if (!done) expect([OLD, NEW]).toContain(content);
  }
  await enough();
  expect(await volumes.read(volumeId)).toBe(content);
  await volumes.write(volumeId, NEW);
  expect(await node.readFile(user, "/data/f")).toBe(NEW);
  await node.writeFile(await startWith(volumeId), "/data/more", "it works");
  expect(await volumes.entries(volumeId)).toEqual(["/f", "/more"]);
  return done;
}

describe("volumes on a full disk of the host", () => {
  it.each(sampleOf("operations on volumes on a full disk", OPERATIONS, (operation) => operation === "upload"))("%s", async (operation) => {
    const full: During = async (work) => {
      await leave(node.dir, 0);
      return await work();
    };
    const done = await proves(operation, full, () => leave(node.dir, 2 * GIB));
    if (operation === "create") expect(done).toBe(false);
    if (operation === "delete" || operation === "download") expect(done).toBe(true);
  });
});

describe("volumes without descriptors", () => {
  const CASES = OPERATIONS.flatMap((operation) => [0, 1, 2, 4, 8, 16].map((spare) => ({ operation, spare })));
  it.each(sampleOf("operations on volumes without descriptors", CASES, ({ operation, spare }) => operation === "upload" && spare === 2))(
    "$operation with $spare to spare",
    async ({ operation, spare }) => {
      await proves(operation, withSpareDescriptors(node, spare));
    },
  );
});

interface Change {
  readonly call: () => Promise<unknown>;
  readonly path: string;
  /** What the path has once the change is made: permission bits, or undefined for nothing. */
  readonly mode: number | undefined;
}

/** Changes of all kinds, a few at a time: each leaves the others without a descriptor at another step. */
async function provesAtOnce(spare: number): Promise<void> {
  const volumeId = randomUUID();
  await volumes.create(volumeId);
  await startWith(volumeId);
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  for (const number of numbers)
    for (const name of ["replaced", "removed", "closed"]) await volumes.write(volumeId, OLD_SHORT, `/${name}-${number}`);
  const expected = await volumes.modes(volumeId);
  const { client } = node;
  const changes = numbers.flatMap((number): Change[] => {
    const [made, replaced, removed, directory, closed] = ["made", "replaced", "removed", "directory", "closed"].map(
      (name) => `/${name}-${number}`,
    ) as [string, string, string, string, string];
    return [
      { path: made, mode: 0o644, call: () => volumes.write(volumeId, NEW_SHORT, made) },
      { path: replaced, mode: 0o644, call: () => volumes.write(volumeId, NEW_SHORT, replaced) },
      { path: removed, mode: undefined, call: () => client.removeVolumeEntry({ volumeId, path: removed }) },
      { path: directory, mode: 0o755, call: () => client.makeVolumeDirectory({ volumeId, path: directory }) },
      { path: closed, mode: 0o600, call: () => client.setVolumeEntry({ volumeId, path: closed, metadata: { mode: 0o600 } }) },
    ];
  });
  const done = new Set<Change>();
  const waiting = changes.values();
  const worker = async () => {
    for (const change of waiting) if (await isDone(change.call)) done.add(change);
  };
  await withSpareDescriptors(node, spare)(() => Promise.all([worker(), worker(), worker()]));
  for (const { path, mode } of done) {
    if (mode === undefined) expected.delete(path);
    else expected.set(path, mode);
  }
  expect(await volumes.modes(volumeId)).toEqual(expected);
  for (const change of changes.filter(({ path }) => path.startsWith("/replaced")))
    expect(await volumes.read(volumeId, change.path), change.path).toBe(done.has(change) ? NEW_SHORT : OLD_SHORT);
}

describe("changes of a volume at once without descriptors", () => {
  const CASES = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20];
  it.each(sampleOf("amounts of spare descriptors for changes at once", CASES, (spare) => spare === 10))("%s to spare", provesAtOnce);
});

describe("volumes without processes", () => {
  const CASES = OPERATIONS.flatMap((operation) => [0, 1, 4].map((spare) => ({ operation, spare })));
  it.each(sampleOf("operations on volumes without processes", CASES, ({ operation, spare }) => operation === "create" && spare === 1))(
    "$operation with $spare to spare",
    async ({ operation, spare }) => {
      await proves(operation, limit.withSpare(spare));
    },
  );
});

describe("volumes without loop devices", () => {
  it.each(sampleOf("operations on volumes without loop devices", OPERATIONS, (operation) => operation === "create"))(
    "%s without any",
    async (operation) => {
      const done = await proves(operation, withoutLoopDevices(node));
      if (operation === "create") expect(done).toBe(false);
    },
  );
});
