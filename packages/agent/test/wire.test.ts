// The Connect protocol at the level of HTTP, as clients of several languages use it.

import { connect as connectHttp2 } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { agentOfFile, run } from "./agent-under-test.ts";
import { envelope, type Frame, parseEnvelopes } from "./envelopes.ts";
import { exchangeBytes } from "./raw-socket.ts";

const agent = await agentOfFile();

type Body = string | Uint8Array<ArrayBuffer>;

async function unary(
  method: string,
  body: Body,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: unknown; headers: Headers }> {
  const response = await agent.fetch(method, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body });
  const bytes = Buffer.from(await response.arrayBuffer());
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: response.status, body: isJson ? JSON.parse(bytes.toString()) : bytes, headers: response.headers };
}

async function stream(method: string, body: Body, headers: Record<string, string> = {}): Promise<Frame[]> {
  const response = await agent.fetch(method, {
    method: "POST",
    headers: { "Content-Type": "application/connect+json", ...headers },
    body,
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("connect-accept-encoding")).toBe("gzip");
  return parseEnvelopes(Buffer.from(await response.arrayBuffer()));
}

const LIST = "/process.Process/List";
const START = "/process.Process/Start";
const STAT = "/filesystem.Filesystem/Stat";
const quick = { process: { cmd: "true" }, stdin: false };
const endOf = (frames: readonly Frame[]) => frames.at(-1);
const failed = (code: string, message?: unknown) => ({
  flags: 2,
  message: { error: { code, ...(message === undefined ? {} : { message }) } },
});

describe("HTTP", () => {
  it("is HTTP/1.1: HTTP/2 is refused, and an upgrade to it is ignored", async () => {
    const session = connectHttp2(agent.url);
    await expect(
      new Promise((_, reject) => session.once("error", reject).once("close", () => reject(new Error("closed")))),
    ).rejects.toThrow();
    session.destroy();
    const offer =
      "GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
    expect((await exchangeBytes(agent.port, [Buffer.from(offer)], "answered")).toString()).toMatch(/^HTTP\/1\.1 204 /);
  });

  it.each(["49983-ID-00000000.127.0.0.1", "1.2.3", "[::", "%", "a_b:port", ""])(
    "answers whatever host name the request has: %s",
    async (host) => {
      const send = async (path: string, type: string, body: Uint8Array) => {
        const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
        return (await exchangeBytes(agent.port, [Buffer.from(head), body], "answered", 5_000)).toString();
      };
      expect(await send(LIST, "application/json", Buffer.from("{}"))).toMatch(/^HTTP\/1\.1 200 /);
      const started = await send(START, "application/connect+json", envelope(quick));
      expect(started).toMatch(/^HTTP\/1\.1 200 [\s\S]*"exited":true/);
      expect(await send("/files?path=/tmp/of-any-host", "application/octet-stream", Buffer.from("text"))).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it("keeps idle connections open for longer than any proxy", async () => {
    const answer = await exchangeBytes(agent.port, [Buffer.from("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")], "answered");
    expect(answer.toString()).toMatch(/^Keep-Alive: timeout=640\r$/m);
  });

  it("varies by origin, and for downloads by encoding instead", async () => {
    expect((await agent.fetch("/envs")).headers.get("vary")).toBe("Origin");
    expect((await agent.fetch("/files?path=/etc/passwd")).headers.get("vary")).toBe("Accept-Encoding");
  });
});

describe("a unary call", () => {
  it("accepts names in both spellings, unknown fields, numbers as text, and null for absent fields", async () => {
    const { body } = await unary("/filesystem.Filesystem/ListDir", '{"path":"/etc","depth":"1","no_such_field":[1],"other":null}');
    expect((body as { entries: object[] }).entries.length).toBeGreaterThan(5);
    const made = await unary("/filesystem.Filesystem/CreateWatcher", '{"path":"/tmp","include_entry":true,"allow_network_mounts":true}');
    const { watcherId } = made.body as { watcherId: string };
    expect(watcherId).toMatch(/^w[a-z0-9]{20}$/);
    expect((await unary("/filesystem.Filesystem/GetWatcherEvents", `{"watcher_id":"${watcherId}"}`)).status).toBe(200);
    expect((await unary("/filesystem.Filesystem/RemoveWatcher", `{"watcherId":"${watcherId}"}`)).body).toEqual({});
  });

  it("responds in proto3 JSON: default values omitted, enums by name, 64-bit numbers as text, times with their fraction", async () => {
    await run(agent, "/bin/sh", ["-c", "printf x > /tmp/skerry-wire; touch -d 2024-01-02T03:04:05.678Z /tmp/skerry-wire"]);
    const { body } = await unary(STAT, '{"path":"/tmp/skerry-wire"}');
    const { entry } = body as { entry: Record<string, unknown> };
    expect(entry).toMatchObject({ type: "FILE_TYPE_FILE", size: "1", modifiedTime: "2024-01-02T03:04:05.678Z", mode: 0o644 });
    for (const name of ["symlinkTarget", "metadata", "isSymlink"]) expect(entry).not.toHaveProperty(name);
    await run(agent, "rm", ["/tmp/skerry-wire"]);
  });

  it("may be empty in the binary codec and not in JSON", async () => {
    const binary = await unary(LIST, new Uint8Array(), { "Content-Type": "application/proto" });
    expect({ status: binary.status, bytes: binary.body }).toEqual({ status: 200, bytes: Buffer.alloc(0) });
    expect(await unary(LIST, "")).toMatchObject({ status: 400, body: { code: "invalid_argument" } });
  });

  it("may be compressed with gzip only", async () => {
    const packed = new Uint8Array(gzipSync('{"path":"/etc/passwd"}'));
    expect(await unary(STAT, packed, { "Content-Encoding": "gzip" })).toMatchObject({ status: 200, body: { entry: { name: "passwd" } } });
    const { status, body, headers } = await unary(STAT, packed, { "Content-Encoding": "br" });
    expect({ status, body }).toMatchObject({ status: 501, body: { code: "unimplemented" } });
    expect((body as { message: string }).message).toContain("gzip");
    expect(headers.get("accept-encoding")).toBe("gzip");
    expect(await unary(STAT, "no gzip", { "Content-Encoding": "gzip" })).toMatchObject({ status: 400, body: { code: "invalid_argument" } });
  });

  it.each([
    ["a version that is not 1", { "Connect-Protocol-Version": "2" }, 400, "invalid_argument"],
    ["a deadline that is no number", { "Connect-Timeout-Ms": "soon" }, 400, "invalid_argument"],
    ["a deadline of more than ten digits", { "Connect-Timeout-Ms": "12345678901" }, 400, "invalid_argument"],
    ["the right version and the longest deadline", { "Connect-Protocol-Version": "1", "Connect-Timeout-Ms": "9999999999" }, 200, undefined],
  ])("with %s", async (_, headers, status, code) => {
    const answer = await unary(LIST, "{}", headers as Record<string, string>);
    expect({ status: answer.status, code: (answer.body as { code?: string }).code }).toEqual({ status, code });
  });

  it.each([
    [STAT, '{"path":"/no/such"}', 404, "not_found"],
    [STAT, '{"path":"/etc/passwd/x"}', 500, "internal"],
    [STAT, '{"path":"~other"}', 400, "invalid_argument"],
    ["/filesystem.Filesystem/MakeDir", '{"path":"/tmp"}', 409, "already_exists"],
    ["/process.Process/SendSignal", "{}", 501, "unimplemented"],
  ])("%s of %s fails with HTTP %i", async (method, body, status, code) => {
    const answer = await unary(method, body);
    expect(answer).toMatchObject({ status, body: { code, message: expect.any(String) } });
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  it("fails with HTTP 400 on a loop of links, which is a failed precondition", async () => {
    await run(agent, "ln", ["-sfn", "skerry-wire-loop", "/tmp/skerry-wire-loop"]);
    expect(await unary("/filesystem.Filesystem/ListDir", '{"path":"/tmp/skerry-wire-loop"}')).toMatchObject({
      status: 400,
      body: { code: "failed_precondition", message: 'cyclic symlink or chain >255 links at "/tmp/skerry-wire-loop"' },
    });
    await run(agent, "rm", ["/tmp/skerry-wire-loop"]);
  });

  it("fails in JSON in the binary codec too", async () => {
    // path: "/no"
    const answer = await unary(STAT, Uint8Array.of(0x0a, 0x03, 0x2f, 0x6e, 0x6f), { "Content-Type": "application/proto" });
    expect(answer).toMatchObject({ status: 404, body: { code: "not_found", message: expect.stringMatching(/^file not found: /) } });
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  it("fails with HTTP 500 where the code is unknown", async () => {
    const terminal = stream(START, envelope({ process: { cmd: "cat" }, pty: { size: { cols: 80, rows: 24 } }, tag: "wire-terminal" }));
    await expect.poll(async () => JSON.stringify((await unary(LIST, "{}")).body)).toContain("wire-terminal");
    expect(await unary("/process.Process/CloseStdin", '{"process":{"tag":"wire-terminal"}}')).toMatchObject({
      status: 500,
      body: { code: "unknown", message: expect.stringMatching(/^error closing stdin: cannot close stdin for PTY process/) },
    });
    await unary("/process.Process/SendSignal", '{"process":{"tag":"wire-terminal"},"signal":"SIGNAL_SIGKILL"}');
    await terminal;
  });

  it.each([
    ['"SIGNAL_SIGKILL"', "killed"],
    ["15", "terminated"],
  ])("takes the signal %s, a name that it does not know for none, and null for nothing", async (signal, text) => {
    const frames = stream(START, envelope({ process: { cmd: "cat" }, stdin: null, tag: null, pty: null }));
    const list = async () => (await unary(LIST, "{}")).body as { processes?: { pid: number }[] };
    await expect.poll(list).toEqual({ processes: [{ config: { cmd: "cat" }, pid: expect.any(Number) }] });
    const send = async (value: string) =>
      unary("/process.Process/SendSignal", `{"process":{"pid":${(await list()).processes?.[0]?.pid}},"signal":${value}}`);
    expect(await send('"SIGNAL_NO_SUCH"')).toMatchObject({
      status: 501,
      body: { code: "unimplemented", message: expect.stringMatching(/^invalid signal: /) },
    });
    expect(await send(signal)).toMatchObject({ status: 200, body: {} });
    expect((await frames).slice(1)).toEqual([
      { flags: 0, message: { event: { end: { exitCode: -1, status: `signal: ${text}`, error: `signal: ${text}` } } } },
      { flags: 2, message: {} },
    ]);
  });
});

describe("a stream", () => {
  it("has one message from the client", async () => {
    expect(endOf(await stream(START, ""))).toMatchObject(failed("unimplemented"));
    const twice = Buffer.concat([envelope(quick), envelope(quick)]);
    expect(endOf(await stream(START, new Uint8Array(twice)))).toMatchObject(failed("unimplemented"));
  });

  it("fails inside the stream for the credentials of an unknown user", async () => {
    expect(await stream(START, envelope(quick), { Authorization: `Basic ${btoa("ghost:")}` })).toEqual([
      failed("unauthenticated", "invalid username: 'ghost'"),
    ]);
  });

  it("accepts compressed messages when the header says so, and sends none", async () => {
    const packed = envelope(new Uint8Array(gzipSync(JSON.stringify(quick))), 1);
    const frames = await stream(START, packed, { "Connect-Content-Encoding": "gzip", "Connect-Accept-Encoding": "gzip" });
    expect(frames.map(({ flags }) => flags)).toEqual([0, 0, 2]);
    expect(endOf(frames)).toEqual({ flags: 2, message: {} });
    expect(endOf(await stream(START, packed, { "Connect-Content-Encoding": "br" }))).toMatchObject(failed("unimplemented"));
  });

  it("nests events as clients read them", async () => {
    const frames = await stream(START, envelope({ process: { cmd: "/bin/sh", args: ["-c", "echo hi; exit 3"] }, stdin: false }));
    expect(frames.map(({ message }) => message)).toEqual([
      { event: { start: { pid: expect.any(Number) } } },
      { event: { data: { stdout: "aGkK" } } },
      { event: { end: { exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" } } },
      {},
    ]);
  });

  it("ends in JSON in the binary codec too, after an exit code in zigzag", async () => {
    // process { cmd: "sh", args: ["-c", "exit 3"] }, stdin: false
    const message = Buffer.from("\x0a\x10\x0a\x02sh\x12\x02-c\x12\x06exit 3\x20\x00");
    const response = await agent.fetch(START, {
      method: "POST",
      headers: { "Content-Type": "application/connect+proto" },
      body: envelope(message),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    // exit_code: 3, exited: true, status
    expect(bytes.toString("latin1")).toContain("\x08\x06\x10\x01\x1a\x0dexit status 3");
    expect(bytes.subarray(-7)).toEqual(Buffer.from([2, 0, 0, 0, 2, 0x7b, 0x7d]));
  });

  it.each(["0", "-5", "many", "99999999999"])("uses the default for the keepalive interval %s", async (interval) => {
    const frames = await stream(START, envelope({ process: { cmd: "sleep", args: ["0.2"] }, stdin: false }), {
      "Keepalive-Ping-Interval": interval,
    });
    expect(frames.map(({ message }) => Object.keys((message as { event?: object }).event ?? {}))).toEqual([["start"], ["end"], []]);
  });

  it("of input is answered when all of it is written", async () => {
    const tag = "wire-input";
    const output = stream(START, envelope({ process: { cmd: "cat" }, tag }));
    await expect.poll(async () => JSON.stringify((await unary(LIST, "{}")).body)).toContain(tag);
    const process = { tag };
    const data = { data: { input: { stdin: Buffer.from("hello").toString("base64url") } } };
    const messages = [{ start: { process } }, data, { keepalive: {} }].map((message) => envelope(message));
    const answer = await stream("/process.Process/StreamInput", new Uint8Array(Buffer.concat(messages)));
    expect(answer).toEqual([
      { flags: 0, message: {} },
      { flags: 2, message: {} },
    ]);
    await unary("/process.Process/CloseStdin", JSON.stringify({ process }));
    expect((await output).map(({ message }) => message)).toContainEqual({ event: { data: { stdout: "aGVsbG8=" } } });
  });
});

describe("a process", () => {
  it("is killed before the agent when memory runs out, and has an ordinary priority, in the agent's session and group", async () => {
    const script = "sleep 0.1; cat /proc/$$/oom_score_adj; nice; ps -o sid=,pgid= -p $$; ps -o sid=,pgid= -p $PPID";
    const { stdout } = await run(agent, "/bin/sh", ["-c", script]);
    const [score, nice, group, agentGroup] = stdout
      .trim()
      .split("\n")
      .map((line) => line.trim().replace(/ +/, " "));
    expect({ score, nice, group }).toEqual({ score: "500", nice: "0", group: agentGroup });
    // The agent sets the limit on processes. All other limits are those of the agent itself.
    const limits = await run(agent, "/bin/sh", ["-c", "diff /proc/$PPID/limits /proc/$$/limits | grep -v 'Max processes' | grep '^[<>]'"]);
    expect(limits.stdout).toBe("");
  });

  it("can be followed after its end, with the end and without the output, but not used by other calls", async () => {
    const frames = await stream(
      START,
      envelope({ process: { cmd: "/bin/sh", args: ["-c", "echo gone; exit 7"] }, tag: "late", stdin: false }),
    );
    await sleep(300);
    const late = await stream("/process.Process/Connect", envelope({ process: { tag: "late" } }));
    expect(late.map(({ message }) => message)).toEqual([
      frames[0]?.message,
      { event: { end: { exitCode: 7, exited: true, status: "exit status 7", error: "exit status 7" } } },
      {},
    ]);
    expect(await unary("/process.Process/CloseStdin", '{"process":{"tag":"late"}}')).toMatchObject({ status: 404 });
    // A new process takes over the tag.
    await stream(START, envelope({ ...quick, tag: "late" }));
    const fresh = await stream("/process.Process/Connect", envelope({ process: { tag: "late" } }));
    expect(fresh.at(-2)?.message).toEqual({ event: { end: { exited: true, status: "exit status 0" } } });
  });

  it("gets variables in their order of precedence", async () => {
    await agent.init({ envVars: { FROM_INIT: "init", HOME: "/of/init", E2B_SANDBOX: "no" } });
    const { stdout } = await run(agent, "/bin/sh", ["-c", 'echo "$FROM_INIT $HOME $E2B_SANDBOX $MINE $PWD"'], {
      envs: { MINE: "mine", FROM_INIT: "request", PWD: "/elsewhere" },
      cwd: "/tmp",
    });
    expect(stdout).toBe("request /of/init true mine /tmp\n");
    expect((await run(agent, "/bin/sh", ["-c", 'echo "$FROM_INIT-$MINE"'])).stdout).toBe("init-\n");
    await agent.init({ envVars: { PATH: "/of/init", USER: "of-init" } });
    const env = async (envs: Record<string, string>) =>
      Object.fromEntries((await run(agent, "/usr/bin/env", [], { envs, cwd: "/tmp" })).stdout.split("\n").map((line) => line.split("=")));
    const own = { E2B_SANDBOX: "true", HOME: "/root", LOGNAME: "root", USER: "root", PWD: "/tmp", "": undefined };
    expect(await env({})).toEqual({ ...own, PATH: "/of/init", USER: "of-init" });
    const envs = { E2B_SANDBOX: "mine", HOME: "/h", PATH: "/p", USER: "u", LOGNAME: "l" };
    expect(await env(envs)).toEqual({ ...own, ...envs });
    await agent.init({ envVars: {} });
    expect(await env({})).toEqual({ ...own, PATH: expect.stringContaining("/usr/bin") });
  });
});

describe("an upload", () => {
  it("keeps the first of repeated metadata headers, with a lower-case key", async () => {
    const path = "/tmp/skerry-wire-metadata";
    const head = `POST /files?path=${encodeURIComponent(path)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/octet-stream\r\n`;
    const request = `${head}X-Metadata-Key: first\r\nx-metadata-KEY: second\r\nContent-Length: 1\r\n\r\nx`;
    const answer = (await exchangeBytes(agent.port, [Buffer.from(request)], "answered", 1_000)).toString();
    expect(answer).toContain('"metadata":{"key":"first"}');
    await run(agent, "rm", [path]);
  });

  it("succeeds without metadata on a file system that stores none", async () => {
    const response = await agent.fetch("/files?path=/dev/shm/skerry-wire", {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream", "X-Metadata-Key": "value" },
      body: "x",
    });
    // Some kernels store user attributes on tmpfs too.
    const [{ metadata, ...rest } = {}] = (await response.json()) as { metadata?: object }[];
    expect(rest).toEqual({ name: "skerry-wire", path: "/dev/shm/skerry-wire", type: "file" });
    expect([undefined, "value"]).toContain((metadata as { key?: string } | undefined)?.key);
    await run(agent, "rm", ["/dev/shm/skerry-wire"]);
  });
});
