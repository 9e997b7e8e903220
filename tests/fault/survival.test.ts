// Processes inside a sandbox, and connections to it, while it is paused, resumed, snapshotted in place and forked.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { agentCommand } from "@skerry/agent";
import { scaled } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { getText, processesOf, run, startInBackground } from "./node/agent-of.ts";
import { ChildNode } from "./node/child-node.ts";

const PROGRAM = readFileSync(join(import.meta.dirname, "node/guest-program.mjs"), "utf8");
const ROUNDS = scaled("snapshots while data is on its way", { sample: 1, full: 3 });
const HANDSHAKE_ROUNDS = scaled("snapshots while connections are opened", { sample: 3, full: 30 });
const NODE_ARGV = agentCommand("x64").slice(0, -1);

interface State {
  readonly pid: number;
  readonly startedAt: string;
  readonly ticks: number;
  readonly now: number;
  readonly watched: boolean;
  readonly unix: boolean;
  readonly child: boolean;
  readonly deleted: string;
  readonly deletedLinks: number;
  readonly memory: string;
}

let count = 0;
const newId = (letter: string, length: number) => {
  count += 1;
  return `${letter}${String(count).padStart(length - 1, "0")}`;
};

describe("inside a sandbox on gvisor", () => {
  let node: ChildNode;
  let id: string;
  beforeAll(async () => {
    node = await ChildNode.start({ runtime: "gvisor" });
  });
  afterAll(() => node?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    id = newId("i", 21);
    await node.client.createSandbox({ spec: node.spec(id) });
    await run(processesOf(node, id), "/bin/mkdir", ["-p", "/root/held/watched"]);
    await node.writeFile(id, "/root/guest.mjs", PROGRAM);
    const [program = "", ...args] = NODE_ARGV;
    await startInBackground(processesOf(node, id), program, [...args, "/root/guest.mjs"]);
    await waitUntil("the guest's program runs", async () => (await node.readFile(id, "/root/held/ready")) === "");
  });
  afterEach(() => node.empty());

  const stateOf = async (sandboxId: string, token: string) =>
    JSON.parse(await getText(node, sandboxId, { port: 8000, path: `/state?token=${token}` })) as State;
  const pauseAndResume = async () => {
    const imageId = newId("m", 20);
    await node.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    await node.client.resumeSandbox({ spec: node.spec(id, { imageId }) });
  };
  const snapshot = async () => {
    const imageId = newId("m", 20);
    await node.client.snapshotSandbox({ sandboxId: id, imageId, memory: true });
    return imageId;
  };
  const expectWhole = async (sandboxId: string, before: State, token: string) => {
    const askedAt = Date.now();
    const after = await stateOf(sandboxId, token);
    const { pid, startedAt, memory, deleted, deletedLinks } = before;
    expect(after).toMatchObject({ pid, startedAt, memory, deleted, deletedLinks, watched: true, unix: true, child: true });
    expect(after.ticks).toBeGreaterThan(before.ticks);
    expect(after.now).toBeGreaterThan(askedAt - 2_000);
    expect(after.now).toBeLessThan(Date.now() + 2_000);
  };

  it("everything continues after a pause and a resume, three times", async () => {
    const before = await stateOf(id, "first");
    for (const token of ["second", "third", "fourth"]) {
      await pauseAndResume();
      await expectWhole(id, before, token);
    }
    expect(await node.readFile(id, "/root/held/kept")).toBe("one and first and second and third and fourth");
  });

  it("everything continues after snapshots in place, and in their forks", async () => {
    const before = await stateOf(id, "first");
    await snapshot();
    await expectWhole(id, before, "second");
    const imageId = await snapshot();
    await expectWhole(id, before, "third");
    const forks = [newId("i", 21), newId("i", 21)];
    for (const fork of forks) {
      await node.client.createSandbox({ spec: node.spec(fork, { imageId }) });
      await expectWhole(fork, before, `fork-${fork}`);
    }
    expect(await node.readFile(id, "/root/held/kept")).toBe("one and first and second and third");
    for (const fork of forks) expect(await node.readFile(fork, "/root/held/kept")).toBe(`one and first and second and fork-${fork}`);
  });

  it("a terminal continues after a pause and a snapshot", async () => {
    const controller = new AbortController();
    const request = { process: { cmd: "/bin/sh" }, pty: { size: { cols: 80, rows: 24 } }, tag: "terminal" };
    let pid = 0;
    for await (const { event } of processesOf(node, id).start(request, { signal: controller.signal })) {
      if (event?.event.case === "start") pid = event.event.value.pid;
      if (pid > 0) break;
    }
    controller.abort();
    const selector = { selector: { case: "pid" as const, value: pid } };
    const type = async (text: string) => {
      const input = { input: { case: "pty" as const, value: new TextEncoder().encode(text) } };
      await processesOf(node, id).sendInput({ process: selector, input });
    };
    await type("X=kept\n");
    await pauseAndResume();
    await snapshot();
    await type("echo $X > /root/held/typed\n");
    await waitUntil("the terminal's shell answers", async () => (await node.readFile(id, "/root/held/typed")) === "kept\n");
  });

  it("loses no byte of a download, also across several snapshots", async () => {
    const lines = 12_000;
    const downloading = getText(node, id, { port: 8000, path: `/stream?lines=${lines}` });
    for (let round = 0; round < ROUNDS; round += 1) {
      await sleep(400);
      await snapshot();
    }
    const numbers = (await downloading).split("\n").map((line) => line.split(" ")[0]);
    expect(numbers).toEqual([...Array.from({ length: lines }, (_, at) => String(at)), "end", ""]);
  });

  it("loses no byte of an upload, even of data that is sent while the sandbox is frozen", async () => {
    const socket = await node.dial(id, 8002);
    const hash = createHash("sha256");
    let size = 0;
    let done = false;
    const uploading = (async () => {
      for (let piece = 0; !done; piece += 1) {
        const bytes = Buffer.alloc(64 * 1024, `${piece} `);
        hash.update(bytes);
        size += bytes.length;
        if (!socket.write(bytes)) await once(socket, "drain");
        await sleep(1);
      }
      socket.end();
    })();
    let answer = "";
    socket.on("data", (chunk) => {
      answer += String(chunk);
    });
    const closed = once(socket, "close");
    for (let round = 0; round < ROUNDS; round += 1) {
      await sleep(300);
      await snapshot();
    }
    done = true;
    await uploading;
    await closed;
    expect(answer).toBe(`${size} ${hash.digest("hex")}`);
  });

  it("keeps an idle connection and an echo, both ways", async () => {
    const idle = await node.dial(id, 8001);
    const busy = await node.dial(id, 8001);
    let sent = "";
    let received = "";
    busy.on("data", (chunk) => {
      received += String(chunk);
    });
    const typing = setInterval(() => {
      const text = `${sent.length} `;
      sent += text;
      busy.write(text);
    }, 3);
    for (let round = 0; round < ROUNDS; round += 1) {
      await sleep(200);
      await snapshot();
    }
    clearInterval(typing);
    await waitUntil("everything has come back", () => received.length >= sent.length);
    expect(received).toBe(sent);
    idle.write("still there");
    expect(String((await once(idle, "data"))[0])).toBe("still there");
    idle.destroy();
    busy.destroy();
  });

  it("accepts new connections while it is frozen", async () => {
    let failed = 0;
    let done = false;
    // Some are always in the middle of a handshake. A connection that no server accepts is never answered.
    const ask = async () => {
      while (!done) {
        await getText(node, id, { port: 8000, path: "/" }).catch(() => {
          failed += 1;
        });
      }
    };
    const asking = Promise.all([ask(), ask(), ask()]);
    for (let round = 0; round < HANDSHAKE_ROUNDS; round += 1) {
      await sleep(60 + Math.random() * 30);
      await snapshot();
    }
    done = true;
    await asking;
    expect(failed).toBe(0);
  });
});
