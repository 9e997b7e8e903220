import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import type { WatchDirResponse } from "@skerry/wire/filesystem";
import { beforeEach, describe, expect, it } from "vitest";
import { agentOfFile, failure } from "./agent-under-test.ts";
import { canMountFuse, mountFuse } from "./fuse-mount.ts";
import { describeEvent, inotifyDescriptors, openWatch, uploadTo, whileStopped } from "./watching.ts";

const agent = await agentOfFile();
let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "skerry-stream-")));
  return async () => {
    await expect.poll(() => inotifyDescriptors(agent)).toEqual([]);
    await rm(folder, { recursive: true, force: true });
  };
});

interface Stream extends AsyncDisposable {
  next(): Promise<string>;
  take(count: number): Promise<string[]>;
}

/** Opens a stream that has sent `start`. */
async function open(options: { path?: string; recursive?: boolean } = {}, headers: Record<string, string> = {}): Promise<Stream> {
  const abort = new AbortController();
  const messages = agent.filesystem.watchDir({ path: folder, ...options }, { signal: abort.signal, headers })[Symbol.asyncIterator]();
  const next = async () => {
    const { value } = await messages.next();
    return describeMessage(value);
  };
  expect(await next()).toBe("start");
  return {
    next,
    take: async (count) => {
      const all: string[] = [];
      while (all.length < count) all.push(await next());
      return all;
    },
    async [Symbol.asyncDispose]() {
      abort.abort();
    },
  };
}

function describeMessage(message: WatchDirResponse | undefined): string {
  const event = message?.event;
  return event?.case === "filesystem" ? describeEvent(event.value) : (event?.case ?? "end");
}

describe("WatchDir", () => {
  it("sends start, and then every event at once", async () => {
    await using stream = await open({ recursive: true });
    await uploadTo(agent, join(folder, "a/b"), "x");
    expect(await stream.take(5)).toEqual(["CREATE a", "CHMOD a", "CREATE a/b", "CHMOD a/b", "WRITE a/b"]);
    await agent.filesystem.remove({ path: join(folder, "a") });
    expect(await stream.take(2)).toEqual(["REMOVE a/b", "REMOVE a"]);
  });

  it("sends keepalive at the interval that the client asks for, and ignores malformed intervals", async () => {
    await using stream = await open({}, { "Keepalive-Ping-Interval": "1" });
    expect(await stream.take(2)).toEqual(["keepalive", "keepalive"]);
    for (const interval of ["0", "-1", "x", "1e9"]) {
      await using other = await open({}, { "Keepalive-Ping-Interval": interval });
      writeFileSync(join(folder, `after ${interval}`), "");
      expect(await other.next()).toBe(`CREATE after ${interval}`);
    }
  });

  it("ends with deadline_exceeded at Connect-Timeout-Ms, and at once when that is 0", async () => {
    const watch = (timeout: string) =>
      failure(
        (async () => {
          const messages = agent.filesystem.watchDir({ path: folder }, { headers: { "Connect-Timeout-Ms": timeout } });
          for await (const { event } of messages) expect(event.case).toBe("start");
        })(),
      );
    const deadline = { code: Code.DeadlineExceeded, message: expect.stringContaining("deadline") };
    expect(await watch("300")).toEqual(deadline);
    expect(await watch("0")).toEqual(deadline);
  });

  it("continues when the watched directory is deleted", async () => {
    mkdirSync(join(folder, "root"));
    await using stream = await open({ path: join(folder, "root") }, { "Keepalive-Ping-Interval": "1" });
    await agent.filesystem.remove({ path: join(folder, "root") });
    expect(await stream.take(2)).toEqual(["REMOVE .", "keepalive"]);
  });

  it("releases everything when its client disconnects", async () => {
    {
      await using _one = await open();
      await using _two = await open({ recursive: true });
      expect(inotifyDescriptors(agent)).toHaveLength(1);
    }
    await expect.poll(() => inotifyDescriptors(agent)).toEqual([]);
  });

  it("gives each of several watchers of one directory all of its events", async () => {
    await using one = await open();
    await using two = await open({ recursive: true });
    writeFileSync(join(folder, "f"), "");
    expect([await one.next(), await two.next()]).toEqual(["CREATE f", "CREATE f"]);
    await one[Symbol.asyncDispose]();
    writeFileSync(join(folder, "g"), "");
    expect(await two.next()).toBe("CREATE g");
  });
});

describe("what cannot be watched", () => {
  const ask = async (path: string, recursive = false) => {
    const stream = failure(agent.filesystem.watchDir({ path, recursive })[Symbol.asyncIterator]().next());
    const unary = failure(agent.filesystem.createWatcher({ path, recursive }));
    expect(await stream).toEqual(await unary);
    return await unary;
  };

  it("is what is missing, what is no directory, and a path of nobody's home", async () => {
    writeFileSync(join(folder, "file"), "");
    symlinkSync("loop", join(folder, "loop"));
    expect(await ask(join(folder, "nope"))).toEqual({
      code: Code.NotFound,
      message: expect.stringMatching(/^path .*\/nope not found: /),
    });
    expect(await ask(join(folder, "file"), true)).toEqual({
      code: Code.InvalidArgument,
      message: expect.stringMatching(/^path .*\/file not a directory/),
    });
    expect(await ask("~nobody")).toMatchObject({ code: Code.InvalidArgument });
    expect(await ask(join(folder, "loop"))).toMatchObject({ code: Code.Internal });
    expect(await ask("/a\0b")).toEqual({ code: Code.InvalidArgument, message: "a path can't contain a NUL character" });
  });

  it.runIf(canMountFuse())("is a file system whose changes may be made elsewhere, unless the client takes that", async () => {
    const path = join(folder, "fuse");
    await using _mount = await mountFuse(path);
    expect(await ask(path)).toEqual({ code: Code.InvalidArgument, message: `cannot watch path on network filesystem: ${path}` });
    const { watcherId } = await agent.filesystem.createWatcher({ path, allowNetworkMounts: true });
    await agent.filesystem.removeWatcher({ watcherId });
  });

  it("is a watcher that nobody made", async () => {
    const unknown = { code: Code.NotFound, message: "watcher with id wnope not found" };
    expect(await failure(agent.filesystem.getWatcherEvents({ watcherId: "wnope" }))).toEqual(unknown);
    expect(await failure(agent.filesystem.removeWatcher({ watcherId: "wnope" }))).toEqual(unknown);
  });
});

/** Whether the kernel's event queue has a limit. gVisor's has none. */
const QUEUE_HAS_LIMIT = existsSync("/proc/sys/fs/inotify/max_queued_events");

describe.runIf(QUEUE_HAS_LIMIT)("more events than clients fetch", () => {
  it("is reported when the kernel's queue overflows: now and in every later call, and the stream ends", async () => {
    const watcher = await openWatch(agent, { path: folder });
    await using stream = await open();
    whileStopped(agent, () => {
      execFileSync("sh", ["-c", "i=0; while [ $i -lt 20000 ]; do : > $i; i=$((i+1)); done"], { cwd: folder });
    });
    const lost = { code: Code.Internal, message: expect.stringContaining("overflowed and events are lost") };
    expect(await failure(watcher.poll())).toEqual(lost);
    expect(await failure(watcher.poll())).toEqual(lost);
    expect(await failure(stream.take(20_000))).toEqual(lost);
    const again = await openWatch(agent, { path: folder });
    writeFileSync(join(folder, "after"), "");
    expect(await again.poll()).toEqual(["CREATE after"]);
    await again.remove();
    await watcher.remove();
  });

  it("is kept for a client that polls late, up to a limit that is reported", async () => {
    const watcher = await openWatch(agent, { path: folder });
    // In portions that fit the kernel's queue, because this tests the agent's own limit.
    const fill = async (count: number) => {
      for (let made = 0; made < count; made += 4_000) {
        execFileSync("sh", ["-c", "i=0; while [ $i -lt 4000 ]; do : > a; : > b; i=$((i+1)); done"], { cwd: folder });
        await agent.fetch("/health");
      }
    };
    await fill(20_000);
    const events = await watcher.poll();
    expect(events.length).toBeGreaterThan(39_000);
    await fill(80_000);
    expect(await failure(watcher.poll())).toEqual({
      code: Code.ResourceExhausted,
      message: expect.stringContaining("events were not read"),
    });
    await watcher.remove();
  });
});
