// A daemon without free descriptors, processes or loop devices, and a sandbox whose memory is used up. Each operation is completed or
// refused, and never half done. Nothing is lost or left over, and everything works once there is enough again.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { sampleOf } from "@skerry/testkit/depth";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ChildNode } from "./node/child-node.ts";
import {
  type During,
  ProcessLimit,
  withoutLoopDevices,
  withoutMemory,
  withoutTokenBuckets,
  withSpareDescriptors,
} from "./node/scarcity.ts";

const OPERATIONS = ["create", "create from a snapshot", "pause", "resume", "snapshot", "kill"] as const;
type Operation = (typeof OPERATIONS)[number];

let count = 0;
const newId = (letter: string, length: number) => {
  count += 1;
  return `${letter}${String(count).padStart(length - 1, "0")}`;
};

let node: ChildNode;
beforeAll(async () => {
  node = await ChildNode.start({ runtime: "gvisor", ownMounts: true });
});
afterAll(() => node?.[Symbol.asyncDispose]());
afterEach(() => node.empty());

const MARKS = ["disk", "memory"];
async function marked(): Promise<string> {
  const id = newId("i", 21);
  await node.client.createSandbox({ spec: node.spec(id) });
  await node.writeFile(id, "/root/file", "disk");
  await node.writeFile(id, "/dev/shm/memory", "memory");
  return id;
}
const marksOf = async (id: string, token?: string) => [
  await node.readFile(id, "/root/file", token),
  await node.readFile(id, "/dev/shm/memory", token),
];
const resume = (id: string, imageId: string) => node.client.resumeSandbox({ spec: node.spec(id, { imageId }) });
const startOf = (id: string, imageId = "") =>
  node.client.createSandbox({ spec: node.spec(id, imageId === "" ? {} : { imageId, accessToken: "b" }) });

/** The response of a call that may cost a sandbox its memory. */
interface Answer {
  readonly memoryLostReason?: string;
}

/** Runs the operation while a resource is missing. Returns undefined if the operation was refused. */
type Without = (operation: () => Promise<Answer>) => Promise<Answer | undefined>;

async function tried(work: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await work();
  } catch (error) {
    // The message says what is missing or that nothing was done. It never has the text of a system call.
    expect(String(error)).not.toMatch(/\b(EMFILE|ENFILE|EAGAIN|ENOMEM|ENOTTY|ioctl|spawn)\b/);
    return undefined;
  }
}

const without =
  (during: During): Without =>
  (operation) =>
    during(() => tried(operation));

/** Whatever the result, the sandbox exists once, and is complete unless the response says otherwise. Then the operation succeeds. */
async function proves(operation: Operation, withoutIt: Without): Promise<void> {
  const id = await marked();
  const imageId = newId("m", 20);
  const again = newId("m", 20);
  const other = newId("i", 21);
  const snapshot = (image: string) => node.client.snapshotSandbox({ sandboxId: id, imageId: image, memory: true });
  const pause = (image: string) => node.client.pauseSandbox({ sandboxId: id, imageId: image, memory: true });
  /** Checks that the sandbox runs, or that the node has paused it because its runtime failed, and that it can be resumed. */
  const stillThere = async (answer: Answer = {}) => {
    const found = async () => {
      const { sandboxes, kept } = await node.client.listSandboxes({});
      if (sandboxes.some(({ sandboxId, state }) => sandboxId === id && state === "running")) return "running";
      return kept.find(({ sandboxId }) => sandboxId === id)?.imageId;
    };
    await expect.poll(found).toBeDefined();
    const where = await found();
    const resumed: Answer = where === "running" ? answer : await resume(id, where ?? "");
    expect(await marksOf(id)).toEqual(resumed.memoryLostReason ? ["disk", 404] : MARKS);
  };
  switch (operation) {
    case "create": {
      // What could not be released at once blocks only its own id.
      // A size for which no area is prepared.
      const start = (one: string) => node.client.createSandbox({ spec: node.spec(one, { diskSizeMb: 64 + count }) });
      if (!(await withoutIt(() => start(other)))) await start(newId("i", 21));
      return stillThere();
    }
    case "create from a snapshot": {
      await snapshot(imageId);
      const done = await withoutIt(() => startOf(other, imageId));
      const started = done ? other : newId("i", 21);
      if (!done) await startOf(started, imageId);
      expect(await marksOf(started, "b")).toEqual(done?.memoryLostReason ? ["disk", 404] : MARKS);
      return stillThere();
    }
    case "pause": {
      const done = await withoutIt(() => pause(imageId));
      if (!done) {
        await stillThere();
        await pause(again);
      }
      expect(await node.images()).toEqual([done ? imageId : again]);
      expect(await node.running()).toEqual([]);
      await resume(id, done ? imageId : again);
      return stillThere(done);
    }
    case "resume": {
      await pause(imageId);
      const done = await withoutIt(() => resume(id, imageId));
      if (!done) {
        expect(await node.images()).toEqual([imageId]);
        await expect.poll(() => node.running()).toEqual([]);
        await resume(id, imageId);
      }
      return stillThere(done);
    }
    case "snapshot": {
      const done = await withoutIt(() => snapshot(imageId));
      await stillThere(done);
      const [, hasMemory] = await marksOf(id);
      if (!done) await snapshot(again);
      await startOf(other, done ? imageId : again);
      // A complete image has the memory of its time, whatever happened to the sandbox.
      expect(await marksOf(other, "b")).toEqual(done ? MARKS : ["disk", hasMemory]);
      expect(await marksOf(id)).toEqual(["disk", hasMemory]);
      return;
    }
    case "kill": {
      await withoutIt(() => node.client.killSandbox({ sandboxId: id }).then(() => ({})));
      await expect.poll(() => node.running()).toEqual([]);
    }
  }
}

describe("descriptors", () => {
  const CASES = OPERATIONS.flatMap((operation) => [0, 1, 2, 4, 8, 16].map((spare) => ({ operation, spare })));
  it.each(sampleOf("counts of descriptors", CASES, ({ operation, spare }) => spare === 2 && operation === "snapshot"))(
    "$operation with $spare to spare",
    async ({ operation, spare }) => {
      await proves(operation, without(withSpareDescriptors(node, spare)));
    },
  );
});

describe("processes", () => {
  let limit: ProcessLimit;
  beforeAll(() => {
    limit = new ProcessLimit(node);
  });
  afterAll(() => limit?.[Symbol.asyncDispose]());
  const CASES = OPERATIONS.flatMap((operation) => [0, 1, 4, 8, 12].map((spare) => ({ operation, spare })));
  it.each(
    sampleOf(
      "counts of processes",
      CASES,
      ({ operation, spare }) => (spare === 1 && operation === "pause") || (spare === 4 && operation === "snapshot"),
    ),
  )("$operation with $spare to spare", async ({ operation, spare }) => {
    await proves(operation, without(limit.withSpare(spare)));
  });
});

describe("loop devices", () => {
  it.each(sampleOf("operations without loop devices", OPERATIONS, (operation) => operation === "create"))(
    "%s without any",
    async (operation) => {
      let wasRefused = false;
      await proves(operation, async (work) => {
        const answer = await without(withoutLoopDevices(node))(work);
        wasRefused = answer === undefined;
        return answer;
      });
      if (operation === "create") expect(wasRefused).toBe(true);
    },
  );
});

describe("a kernel without token buckets", () => {
  it("refuses a limit of bandwidth in words for callers, and starts everything else", async () => {
    const [limited, id] = [newId("i", 21), newId("i", 21)];
    const options = { networkUse: { bandwidthMbps: 10 } };
    const refusal = { code: Code.Unimplemented, rawMessage: expect.stringContaining("cannot limit bandwidth") };
    await withoutTokenBuckets(node)(async () => {
      await expect(node.client.createSandbox({ spec: node.spec(limited, { options }) })).rejects.toMatchObject(refusal);
      await node.client.createSandbox({ spec: node.spec(id) });
      await expect(node.client.setSandboxOptions({ sandboxId: id, options })).rejects.toMatchObject(refusal);
    });
    expect(await node.running()).toEqual([id]);
    await node.client.createSandbox({ spec: node.spec(limited, { options }) });
    await node.writeFile(limited, "/root/file", "it works");
  });
});

describe("memory of the machine", () => {
  it.each(sampleOf("operations without memory", OPERATIONS, (operation) => ["create", "resume"].includes(operation)))(
    "%s with hardly any",
    async (operation) => {
      let refusal = "";
      await proves(operation, async (work) => {
        refusal = "";
        return await without(withoutMemory(node))(() =>
          work().catch((error: unknown) => {
            refusal = String(error);
            throw error;
          }),
        );
      });
      const starts = ["create", "create from a snapshot", "resume"].includes(operation);
      if (starts) expect(refusal).toContain("The machine does not have enough free memory to start a sandbox");
      else expect(refusal).toBe("");
    },
  );
});

describe("memory of the sandbox", () => {
  /** Limits the sandbox's cgroup to its current memory and `spare` bytes more. */
  const withSpare =
    (spare: number): Without =>
    async (operation) => {
      const [id] = await node.running();
      const record = JSON.parse(readFileSync(join(node.dir, "sandboxes", id ?? "", "sandbox.json"), "utf8")) as { cgroupPath: string };
      const v1 = existsSync("/sys/fs/cgroup/memory");
      const dir = join(v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", record.cgroupPath);
      const [usage, max] = v1 ? ["memory.usage_in_bytes", "memory.limit_in_bytes"] : ["memory.current", "memory.max"];
      const before = readFileSync(join(dir, max), "utf8");
      writeFileSync(join(dir, max), String(Number(readFileSync(join(dir, usage), "utf8")) + spare));
      try {
        return await tried(operation);
      } finally {
        if (existsSync(dir)) writeFileSync(join(dir, max), before);
      }
    };
  const MEMORY_OPERATIONS = ["pause", "snapshot", "kill"] as const;
  const CASES = MEMORY_OPERATIONS.flatMap((operation) => [0, 4 * 2 ** 20, 32 * 2 ** 20].map((spare) => ({ operation, spare })));
  it.each(sampleOf("amounts of spare memory", CASES, ({ operation, spare }) => spare === 0 && operation === "snapshot"))(
    "$operation with $spare bytes to spare",
    async ({ operation, spare }) => {
      await proves(operation, withSpare(spare));
    },
  );
});
