import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type ProcessEvent, Signal, type StreamInputRequestSchema } from "@skerry/wire/process";
import { describe, expect, it } from "vitest";
import { type AgentUnderTest, agentOfFile, failure, run } from "./agent-under-test.ts";
import { envelope, parseEnvelopes } from "./envelopes.ts";

const agent = await agentOfFile();

type Inner = ProcessEvent["event"];

const byPid = (pid: number) => ({ selector: { case: "pid" as const, value: pid } });
const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const send = (pid: number, text: string) =>
  agent.process.sendInput({ process: byPid(pid), input: { input: { case: "stdin", value: bytes(text) } } });
const kill = (pid: number) => agent.process.sendSignal({ process: byPid(pid), signal: Signal.SIGKILL });
const isAlive = async (pid: number) => (await run(agent, "/bin/sh", ["-c", `kill -0 ${pid}`])).exitCode === 0;
const SIZE = { size: { cols: 80, rows: 24 } };

/** Follows a Start stream event by event. */
function start(
  request: Parameters<AgentUnderTest["process"]["start"]>[0],
  options: { timeoutMs?: number; signal?: AbortSignal; headers?: Record<string, string> } = {},
) {
  const events = agent.process.start(request, options)[Symbol.asyncIterator]();
  const next = async (): Promise<Inner | undefined> => {
    const { done, value } = await events.next();
    return done ? undefined : value.event?.event;
  };
  return {
    next,
    async pid(): Promise<number> {
      const first = await next();
      if (first?.case !== "start") throw new Error(`the first event is ${first?.case}`);
      return first.value.pid;
    },
    async output(): Promise<string> {
      const event = await next();
      if (event?.case !== "data") throw new Error(`the event is ${event?.case}`);
      return Buffer.from(event.value.output.value ?? []).toString();
    },
    async rest(): Promise<{ output: string; end: Inner | undefined }> {
      let output = "";
      for (let event = await next(); event; event = await next()) {
        if (event.case === "data") output += Buffer.from(event.value.output.value ?? []).toString("latin1");
        if (event.case === "end") return { output, end: event };
      }
      return { output, end: undefined };
    },
  };
}

describe("Start", () => {
  it("reports exit codes, output of both streams and signals", async () => {
    expect(await run(agent, "/bin/sh", ["-c", "echo out; echo err >&2; exit 3"])).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
      exitCode: 3,
      error: "exit status 3",
    });
    expect(await run(agent, "/bin/true")).toMatchObject({ exitCode: 0, error: undefined });
    expect(await run(agent, "/bin/sh", ["-c", "kill -SEGV $$"])).toMatchObject({
      exitCode: -1,
      error: expect.stringContaining("signal: segmentation fault"),
    });
  });

  it("finds programs by the PATH of the request", async () => {
    expect((await run(agent, "true", [], { envs: { PATH: "/nonexistent" } })).exitCode).toBe(127);
    expect((await run(agent, "true", [], { envs: { PATH: "/nonexistent:/bin" } })).exitCode).toBe(0);
  });

  it("exits with 127 and a message on stderr for a missing program, and with 126 for one that may not run", async () => {
    expect(await run(agent, "no-such-program")).toMatchObject({ exitCode: 127, stderr: expect.stringContaining("no-such-program") });
    expect(await run(agent, "/etc/passwd")).toMatchObject({ exitCode: 126, stderr: expect.stringContaining("ermission denied") });
  });

  it("runs a script without an interpreter line in the shell", async () => {
    expect((await run(agent, "/bin/sh", ["-c", "printf 'echo script $1' > s; chmod +x s; exec ./s x"], { cwd: "/tmp" })).stdout).toBe(
      "script x\n",
    );
    await run(agent, "/bin/sh", ["-c", "printf 'echo script $1' > /tmp/skerry-no-shebang; chmod +x /tmp/skerry-no-shebang"]);
    expect((await run(agent, "/tmp/skerry-no-shebang", ["y"])).stdout).toBe("script y\n");
    await run(agent, "rm", ["/tmp/skerry-no-shebang", "/tmp/s"]);
  });

  it("gives processes the identity, groups and directory of the user, and no capability of the agent", async () => {
    const script = "id -u; id -g; id -G; pwd; echo $HOME $USER $LOGNAME; grep CapEff /proc/self/status; umask";
    const { stdout } = await run(agent, "/bin/sh", ["-c", script], { user: "nobody", cwd: "/" });
    const [uid, gid, groups, cwd, names, capabilities, umask] = stdout.trim().split("\n");
    expect({ uid, gid, groups, cwd, umask }).toEqual({ uid: "65534", gid: "65534", groups: "65534", cwd: "/", umask: "0022" });
    expect(names).toBe("/nonexistent nobody nobody");
    expect(capabilities).toMatch(/\s0+$/);
  });

  it("lets a process open its own stdout and stderr again", async () => {
    const { stdout, stderr } = await run(agent, "/bin/sh", ["-c", "echo a >/dev/stdout; echo b >/dev/stderr"], {
      user: "nobody",
      cwd: "/",
    });
    expect({ stdout, stderr }).toEqual({ stdout: "a\n", stderr: "b\n" });
  });

  it("leaks neither descriptors nor signal settings nor the agent's environment", async () => {
    const descriptors = (await run(agent, "ls", ["/proc/self/fd"])).stdout.match(/^\d+$/gm)?.map(Number) ?? [];
    // ls reads the folder with descriptor 3. High numbers come from the program that started the tests; no runtime passes those on.
    expect(descriptors.filter((fd) => fd < 200)).toEqual([0, 1, 2, 3]);
    const signals = (await run(agent, "grep", ["-E", "Sig(Blk|Ign)", "/proc/self/status"])).stdout;
    // gVisor does not show them.
    if (signals !== "") expect(signals).toBe("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    for (const [name, text] of [
      ["PIPE", "broken pipe"],
      ["HUP", "hangup"],
      ["USR1", "user defined signal 1"],
    ] as const) {
      expect((await run(agent, "/bin/sh", ["-c", `kill -${name} $$`])).error).toBe(`signal: ${text}`);
    }
    expect((await run(agent, "env")).stdout).not.toContain("LD_");
  });

  it("keeps bytes as they are", async () => {
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", "head -c 8191 /dev/zero; printf '\\342'"] }, stdin: false });
    await stream.pid();
    const { output } = await stream.rest();
    expect(output.length).toBe(8192);
    expect(output.at(-1)).toBe("\xe2");
  });

  it.each([
    ["pipes", 32, 3_000_000, { stdin: false }],
    ["a terminal", 16, 300_000, { pty: SIZE }],
  ])("sends no event of %s larger than %i KiB and loses nothing", async (_, kib, length, more) => {
    const stream = start({ process: { cmd: "head", args: ["-c", String(length), "/dev/zero"] }, ...more });
    let total = 0;
    for (let event = await stream.next(); event; event = await stream.next()) {
      if (event.case !== "data") continue;
      const size = event.value.output.value?.length ?? 0;
      expect(size).toBeLessThanOrEqual(kib * 1024);
      total += size;
    }
    expect(total).toBe(length);
  });

  it.each([
    ["a missing directory", { cwd: "/no/such" }, undefined, "cwd '/no/such' does not exist"],
    ["a file as directory", { cwd: "/etc/passwd" }, undefined, "error starting process 'true': "],
    ["another user's home", { cwd: "~other" }, undefined, "cannot expand user-specific home dir"],
    ["a directory that the user may not enter", { cwd: "/root" }, "nobody", "error starting process 'true': "],
    ["a user without a home who names no directory", {}, "nobody", "cwd '/nonexistent' does not exist"],
    ["an argument that is too long", { args: ["x".repeat(300_000)] }, undefined, "error starting process 'true xxx"],
    ["a variable that is too long", { envs: { A: "x".repeat(300_000) } }, undefined, "error starting process 'true': "],
    ["a NUL byte in an argument", { args: ["x", "a\0b"] }, undefined, "error starting process 'true x ab': "],
    ["a NUL byte in a variable's value", { envs: { A: "a\0b" } }, undefined, "error starting process 'true': "],
    ["a NUL byte in a variable's name", { envs: { "A\0": "b" } }, undefined, "error starting process 'true': "],
    ["a NUL byte in the directory", { cwd: "/tmp\0" }, undefined, "error starting process 'true': "],
  ])("refuses %s", async (_, config, user, message) => {
    const headers = user === undefined ? {} : { Authorization: `Basic ${btoa(`${user}:`)}` };
    const error = await failure(start({ process: { cmd: "true", ...config } }, { headers }).pid());
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.message).toContain(message);
  });

  it("resolves directories from the user's home, which is also the default", async () => {
    await run(agent, "mkdir", ["-p", "/root/skerry-cwd/in"]);
    for (const [cwd, resolved] of [
      [undefined, "/root"],
      ["", "/root"],
      ["~", "/root"],
      ["~/", "/root"],
      ["~/skerry-cwd/in", "/root/skerry-cwd/in"],
      ["skerry-cwd/in/..", "/root/skerry-cwd"],
      ["../tmp", "/tmp"],
    ]) {
      expect([cwd, (await run(agent, "/bin/pwd", [], cwd === undefined ? {} : { cwd })).stdout]).toEqual([cwd, `${resolved}\n`]);
    }
    await run(agent, "rm", ["-r", "/root/skerry-cwd"]);
    expect(await failure(start({ process: { cmd: "true", cwd: "~/skerry-cwd" } }).pid())).toEqual({
      code: Code.InvalidArgument,
      message: "cwd '/root/skerry-cwd' does not exist",
    });
  });

  it("refuses users that do not exist", async () => {
    const headers = { Authorization: `Basic ${btoa("ghost:")}` };
    expect(await failure(start({ process: { cmd: "true" } }, { headers }).pid())).toEqual({
      code: Code.Unauthenticated,
      message: "invalid username: 'ghost'",
    });
  });

  it("delivers the output of a background child after its parent ended", async () => {
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", "(sleep 0.6; echo late) & echo early"] }, stdin: false });
    const pid = await stream.pid();
    expect(await stream.output()).toBe("early\n");
    await sleep(100);
    expect((await agent.process.list({})).processes).toMatchObject([{ pid }]);
    expect(await stream.rest()).toMatchObject({ output: "late\n", end: { value: { exitCode: 0 } } });
    expect((await agent.process.list({})).processes).toEqual([]);
  });

  it("sends keepalives while nothing happens", async () => {
    const stream = start({ process: { cmd: "sleep", args: ["1.5"] }, stdin: false }, { headers: { "Keepalive-Ping-Interval": "1" } });
    await stream.pid();
    expect((await stream.next())?.case).toBe("keepalive");
    expect((await stream.next())?.case).toBe("end");
  });

  it("measures the keepalive interval from the last output", async () => {
    const script = "for n in 1 2 3 4; do sleep 0.4; echo $n; done";
    const stream = start(
      { process: { cmd: "/bin/sh", args: ["-c", script] }, stdin: false },
      { headers: { "Keepalive-Ping-Interval": "1" } },
    );
    await stream.pid();
    for (const n of [1, 2, 3, 4]) expect(await stream.output()).toBe(`${n}\n`);
    expect((await stream.next())?.case).toBe("end");
  });
});

describe("deadlines and disconnects", () => {
  it.each([
    ["pipes", { stdin: false }],
    ["a terminal", { pty: SIZE }],
  ])("fails the stream of %s without an end event and kills the process", async (_, more) => {
    const response = await agent.fetch("/process.Process/Start", {
      method: "POST",
      headers: { "Content-Type": "application/connect+json", "Connect-Timeout-Ms": "300" },
      body: envelope({ process: { cmd: "sleep", args: ["30"] }, ...more }),
    });
    const frames = parseEnvelopes(Buffer.from(await response.arrayBuffer()));
    expect(frames).toEqual([
      { flags: 0, message: { event: { start: { pid: expect.any(Number) } } } },
      { flags: 2, message: { error: { code: "deadline_exceeded", message: "context deadline exceeded" } } },
    ]);
    await expect.poll(async () => (await agent.process.list({})).processes.length).toBe(0);
  });

  it("kills the process alone at the deadline", async () => {
    const script = "sleep 20 & echo $!; wait";
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", script] }, stdin: false }, { timeoutMs: 1000 });
    const pid = await stream.pid();
    const child = Number(await stream.output());
    expect(await failure(stream.next())).toMatchObject({ code: Code.DeadlineExceeded });
    await expect.poll(() => isAlive(pid)).toBe(false);
    expect(await isAlive(child)).toBe(true);
    await run(agent, "/bin/sh", ["-c", `kill ${child}`]);
  });

  it("ends a Connect stream at its deadline and leaves the process", async () => {
    const stream = start({ process: { cmd: "sleep", args: ["30"] }, stdin: false });
    const pid = await stream.pid();
    const response = await agent.fetch("/process.Process/Connect", {
      method: "POST",
      headers: { "Content-Type": "application/connect+json", "Connect-Timeout-Ms": "300" },
      body: envelope({ process: { pid } }),
    });
    expect(parseEnvelopes(Buffer.from(await response.arrayBuffer())).map(({ message }) => message)).toEqual([
      { event: { start: { pid } } },
      { error: { code: "deadline_exceeded", message: "context deadline exceeded" } },
    ]);
    expect((await agent.process.list({})).processes).toMatchObject([{ pid }]);
    await kill(pid);
    await stream.rest();
  });

  it("starts nothing when the deadline has already passed", async () => {
    const response = await agent.fetch("/process.Process/Start", {
      method: "POST",
      headers: { "Content-Type": "application/connect+json", "Connect-Timeout-Ms": "0" },
      body: envelope({ process: { cmd: "touch", args: ["/tmp/skerry-never"] } }),
    });
    expect(parseEnvelopes(Buffer.from(await response.arrayBuffer()))).toMatchObject([
      { message: { error: { code: "deadline_exceeded" } } },
    ]);
    expect((await run(agent, "ls", ["/tmp/skerry-never"])).exitCode).not.toBe(0);
  });

  it("keeps the process running when its client disconnects, and lets another client follow it without replay", async () => {
    const abort = new AbortController();
    const script = "echo first; sleep 0.6; echo second; exit 5";
    const config = { cmd: "/bin/sh", args: ["-c", script], envs: { COLOUR: "grey" }, cwd: "../tmp" };
    const stream = start(
      { process: config, tag: "survivor", stdin: false },
      { signal: abort.signal, headers: { Authorization: `Basic ${btoa("nobody:")}` } },
    );
    const pid = await stream.pid();
    await stream.next();
    abort.abort();
    await sleep(100);
    expect((await agent.process.list({})).processes).toMatchObject([{ pid, tag: "survivor", config }]);
    let output = "";
    let exitCode = 0;
    for await (const { event } of agent.process.connect({ process: { selector: { case: "tag", value: "survivor" } } })) {
      const inner = event?.event;
      if (inner?.case === "data") output += Buffer.from(inner.value.output.value ?? []).toString();
      if (inner?.case === "end") exitCode = inner.value.exitCode;
    }
    expect({ output, exitCode }).toEqual({ output: "second\n", exitCode: 5 });
  });

  it("drops the output of a process without followers, which does not block the process", async () => {
    const abort = new AbortController();
    const script = "read go; head -c 5000000 /dev/zero; exit 6";
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", script] } }, { signal: abort.signal });
    const pid = await stream.pid();
    abort.abort();
    await sleep(100);
    await send(pid, "go\n");
    await expect.poll(async () => (await agent.process.list({})).processes.length, { timeout: 5000 }).toBe(0);
    const events: Inner[] = [];
    for await (const { event } of agent.process.connect({ process: byPid(pid) })) if (event?.event) events.push(event.event);
    expect(events).toMatchObject([
      { case: "start", value: { pid } },
      { case: "end", value: { exitCode: 6 } },
    ]);
  });

  it("kills at the deadline although the client has disconnected", async () => {
    const abort = new AbortController();
    const stream = start({ process: { cmd: "sleep", args: ["30"] }, stdin: false }, { signal: abort.signal, timeoutMs: 500 });
    const pid = await stream.pid();
    abort.abort();
    await expect.poll(async () => (await agent.process.list({})).processes.length, { timeout: 3000 }).toBe(0);
    const ends: Inner[] = [];
    for await (const { event } of agent.process.connect({ process: byPid(pid) })) if (event?.event) ends.push(event.event);
    expect(ends).toMatchObject([{ case: "start" }, { case: "end", value: { exitCode: -1, error: "signal: killed" } }]);
  });

  it("does not let a follower that stops reading delay another", async () => {
    const script = "read go; head -c 4000000 /dev/zero; echo done";
    const owner = start({ process: { cmd: "/bin/sh", args: ["-c", script] } });
    const pid = await owner.pid();
    const lazy = agent.process.connect({ process: byPid(pid) })[Symbol.asyncIterator]();
    await lazy.next();
    await agent.process.sendInput({ process: byPid(pid), input: { input: { case: "stdin", value: bytes("go\n") } } });
    const { output, end } = await owner.rest();
    expect(output.length).toBe(4_000_005);
    expect(end?.case).toBe("end");
    let lagged = 0;
    for (let step = await lazy.next(); !step.done; step = await lazy.next()) {
      const inner = step.value.event?.event;
      if (inner?.case === "data") lagged += inner.value.output.value?.length ?? 0;
    }
    expect(lagged).toBe(4_000_005);
  });
});

describe("input", () => {
  it("reaches stdin, and CloseStdin ends it, once or twice", async () => {
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", "cat; sleep 0.3"] } });
    const pid = await stream.pid();
    await send(pid, "hello ");
    await send(pid, "");
    await send(pid, "world");
    await agent.process.closeStdin({ process: byPid(pid) });
    await agent.process.closeStdin({ process: byPid(pid) });
    expect(await stream.rest()).toMatchObject({ output: "hello world", end: { case: "end", value: { exitCode: 0 } } });
  });

  it("is /dev/null when it is disabled", async () => {
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", "read x"] }, stdin: false });
    await stream.pid();
    expect((await stream.rest()).end).toMatchObject({ value: { exitCode: 1 } });
  });

  it.each([
    ["is off", "sleep 30", false, "error writing to stdin: stdin not enabled or closed"],
    ["was closed by its client", "sleep 30", true, "error writing to stdin: stdin not enabled or closed"],
    ["was closed by its process", "exec 0<&-; echo closed; sleep 30", true, /^error writing to stdin: .*broken pipe$/],
  ])("is refused when stdin %s", async (_, script, stdin, message) => {
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", script] }, stdin });
    const pid = await stream.pid();
    if (script.includes("echo")) await stream.output();
    else await agent.process.closeStdin({ process: byPid(pid) });
    for (let time = 1; time <= 2; time += 1) {
      expect(await failure(send(pid, "x"))).toEqual({ code: Code.Internal, message: expect.stringMatching(message) });
    }
    await kill(pid);
    await stream.rest();
  });

  it("streams live: each message arrives before the next is sent", async () => {
    const stream = start({ process: { cmd: "cat" } });
    const pid = await stream.pid();
    const echoed = Promise.withResolvers<void>();
    const input = (text: string) => ({
      event: { case: "data" as const, value: { input: { input: { case: "stdin" as const, value: bytes(text) } } } },
    });
    const sent = agent.process.streamInput(
      (async function* (): AsyncGenerator<MessageInitShape<typeof StreamInputRequestSchema>> {
        yield { event: { case: "start", value: { process: byPid(pid) } } };
        yield input("one");
        await echoed.promise;
        yield { event: { case: "keepalive", value: {} } };
        yield input("two");
      })(),
    );
    expect((await stream.next())?.case).toBe("data");
    echoed.resolve();
    await sent;
    expect((await stream.next())?.case).toBe("data");
    await agent.process.closeStdin({ process: byPid(pid) });
    expect((await stream.rest()).end).toMatchObject({ value: { exitCode: 0 } });
  });

  it("is refused when the process cannot receive it", async () => {
    const stream = start({ process: { cmd: "cat" } });
    const pid = await stream.pid();
    const process = byPid(pid);
    expect(await failure(agent.process.sendInput({ process, input: { input: { case: "pty", value: bytes("x") } } }))).toEqual({
      code: Code.Internal,
      message: expect.stringMatching(/^error writing to tty: tty not assigned to process/),
    });
    expect(await failure(agent.process.sendInput({ process }))).toEqual({ code: Code.Unimplemented, message: "invalid input type <nil>" });
    expect(await failure(agent.process.update({ process, pty: SIZE }))).toEqual({
      code: Code.Internal,
      message: "error resizing tty: tty not assigned to process",
    });
    await agent.process.update({ process });
    await kill(pid);
    await stream.rest();
  });
});

describe("signals and selectors", () => {
  it("kills only the process, and reports it at once although an orphan holds the pipe", async () => {
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", "sleep 60 & echo $!; wait"] }, stdin: false });
    const pid = await stream.pid();
    const child = Number(await stream.output());
    await agent.process.sendSignal({ process: byPid(pid), signal: Signal.SIGKILL });
    expect((await stream.rest()).end).toMatchObject({ value: { exitCode: -1, error: "signal: killed" } });
    expect((await run(agent, "/bin/sh", ["-c", `kill -0 ${pid}`])).exitCode).not.toBe(0);
    expect((await run(agent, "/bin/sh", ["-c", `kill -0 ${child} && kill ${child}`])).exitCode).toBe(0);
  });

  it("answers a kill when the process has ended", async () => {
    for (let round = 0; round < 20; round += 1) {
      const pid = await start({ process: { cmd: "sleep", args: ["30"] }, stdin: false }).pid();
      await kill(pid);
      expect(existsSync(`/proc/${pid}`)).toBe(false);
      expect((await agent.process.list({})).processes).toEqual([]);
    }
  });

  it("lets a process trap SIGTERM, and delivers its later output", async () => {
    const stream = start({
      process: { cmd: "/bin/sh", args: ["-c", "trap 'echo trapped; exit 9' TERM; echo ready; while :; do sleep 0.05; done"] },
      stdin: false,
    });
    const pid = await stream.pid();
    await stream.next();
    await agent.process.sendSignal({ process: byPid(pid), signal: Signal.SIGTERM });
    expect(await stream.rest()).toMatchObject({ output: "trapped\n", end: { value: { exitCode: 9 } } });
  });

  it("reports unknown processes as not found", async () => {
    const unknownPid = byPid(999_999);
    const unknownTag = { selector: { case: "tag" as const, value: "zz" } };
    expect(await failure(agent.process.sendSignal({ process: unknownPid, signal: Signal.SIGKILL }))).toEqual({
      code: Code.NotFound,
      message: "process with pid 999999 not found",
    });
    expect(await failure(agent.process.closeStdin({ process: unknownTag }))).toEqual({
      code: Code.NotFound,
      message: "process with tag zz not found",
    });
    expect(await failure(agent.process.closeStdin({}))).toEqual({
      code: Code.Unimplemented,
      message: expect.stringMatching(/^invalid input type/),
    });
    const notFound = { code: Code.NotFound, message: "process with pid 999999 not found" };
    expect(await failure(agent.process.sendSignal({ process: unknownPid, signal: 0 }))).toEqual(notFound);
    expect(await failure(agent.process.connect({ process: unknownPid })[Symbol.asyncIterator]().next())).toEqual(notFound);
  });

  it("finds each of several tagged processes, the newest where a tag is shared", async () => {
    const streams = [];
    for (const tag of ["a", "b", "a"]) {
      const stream = start({ process: { cmd: "sleep", args: ["30"] }, tag, stdin: false });
      streams.push({ stream, pid: await stream.pid() });
    }
    const killTagged = (value: string) =>
      agent.process.sendSignal({ process: { selector: { case: "tag", value } }, signal: Signal.SIGKILL });
    await killTagged("a");
    await streams[2]?.stream.rest();
    expect((await agent.process.list({})).processes.map(({ pid }) => pid)).toEqual([streams[0]?.pid, streams[1]?.pid]);
    // A live process takes precedence over one that has ended.
    const connected = agent.process.connect({ process: { selector: { case: "tag", value: "a" } } })[Symbol.asyncIterator]();
    expect((await connected.next()).value?.event?.event).toMatchObject({ case: "start", value: { pid: streams[0]?.pid } });
    await killTagged("b");
    await killTagged("a");
    for (const { stream } of streams.slice(0, 2)) expect((await stream.rest()).end?.case).toBe("end");
    expect((await agent.process.list({})).processes).toEqual([]);
  });

  it("refuses other signals", async () => {
    const stream = start({ process: { cmd: "sleep", args: ["30"] }, stdin: false });
    const pid = await stream.pid();
    expect(await failure(agent.process.sendSignal({ process: byPid(pid), signal: 0 }))).toEqual({
      code: Code.Unimplemented,
      message: expect.stringMatching(/^invalid signal: /),
    });
    await kill(pid);
    await stream.rest();
  });
});

describe("terminals", () => {
  it("have a size, take a new one before the first input, and are the controlling terminal", async () => {
    const stream = start({
      process: { cmd: "/bin/sh", args: ["-i"], envs: { PS1: "", TERM: "xterm" } },
      pty: SIZE,
    });
    const pid = await stream.pid();
    await agent.process.update({ process: byPid(pid), pty: { size: { cols: 100, rows: 30 } } });
    const input = bytes("stty size </dev/tty; exit 4\n");
    await agent.process.sendInput({ process: byPid(pid), input: { input: { case: "pty", value: input } } });
    const { output, end } = await stream.rest();
    expect(output).toContain("30 100");
    expect(end).toMatchObject({ value: { exitCode: 4 } });
  });

  it("forward Ctrl-C, and refuse stdin", async () => {
    const stream = start({ process: { cmd: "sleep", args: ["30"] }, pty: SIZE });
    const pid = await stream.pid();
    const process = byPid(pid);
    expect(await failure(send(pid, "x"))).toEqual({
      code: Code.Internal,
      message: expect.stringMatching(/^error writing to stdin: tty assigned to process/),
    });
    expect(await failure(agent.process.closeStdin({ process }))).toEqual({
      code: Code.Unknown,
      message: expect.stringMatching(/^error closing stdin: cannot close stdin for PTY process/),
    });
    await agent.process.sendInput({ process, input: { input: { case: "pty", value: bytes("\x03") } } });
    expect((await stream.rest()).end).toMatchObject({ value: { exitCode: -1, error: "signal: interrupt" } });
  });

  it("are 0 by 0 when no size is given", async () => {
    const stream = start({ process: { cmd: "stty", args: ["size"] }, pty: {} });
    await stream.pid();
    expect((await stream.rest()).output).toBe("0 0\r\n");
  });

  it.each([
    [{ cwd: "/no/such" }, /^cwd '\/no\/such' does not exist$/],
    [{ cwd: "/etc/passwd" }, /^error starting pty with command 'true x' in dir '\/etc\/passwd' with '80' cols and '24' rows: ./],
    [{ args: ["a\0b"] }, /^error starting pty with command 'true ab' in dir '\/root' with '80' cols and '24' rows: ./],
  ])("refuse %j", async (config, message) => {
    expect(await failure(start({ process: { cmd: "true", args: ["x"], ...config }, pty: SIZE }).pid())).toEqual({
      code: Code.InvalidArgument,
      message: expect.stringMatching(message),
    });
  });

  it("report a missing program and exit with 127", async () => {
    const stream = start({ process: { cmd: "no-such-program" }, pty: SIZE });
    await stream.pid();
    expect(await stream.rest()).toMatchObject({ output: expect.stringContaining("no-such-program"), end: { value: { exitCode: 127 } } });
  });

  it("hang up on what is in their foreground when their first process ends", async () => {
    const script = "foreground=$(cut -d' ' -f8 /proc/$$/stat); sleep 30 & echo $! $foreground; wait";
    const stream = start({ process: { cmd: "/bin/sh", args: ["-c", script] }, pty: SIZE });
    const pid = await stream.pid();
    const [child = 0, foreground] = (await stream.output()).trim().split(" ").map(Number);
    expect(await isAlive(child)).toBe(true);
    await kill(pid);
    expect((await stream.rest()).end).toMatchObject({ value: { exitCode: -1, error: "signal: killed" } });
    // gVisor does not send the signal, and does not report the foreground group either.
    if (foreground === 0) await run(agent, "/bin/sh", ["-c", `kill ${child}`]);
    await expect.poll(() => isAlive(child)).toBe(false);
  });

  it("belong to the user", async () => {
    const stream = start(
      { process: { cmd: "/bin/sh", args: ["-c", 'stat -c %U "$(tty)"; id -u'], cwd: "/" }, pty: SIZE },
      { headers: { Authorization: `Basic ${btoa("nobody:")}` } },
    );
    await stream.pid();
    expect((await stream.rest()).output).toBe("nobody\r\n65534\r\n");
  });
});
