// Fuzzes paths, programs and files inside a sandbox, through the edge, where they can do no harm outside.
// packages/agent/test/fuzz-wire.test.ts fuzzes the protocol at byte level.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Filesystem } from "@skerry/wire/filesystem";
import { Process } from "@skerry/wire/process";
import { Sandbox } from "e2b";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";

const RUNS = scaled("random paths and programs for an agent", { sample: 40, full: 400 });
const ROOT = "/home/user/fuzz";
const CANARY = "/tmp/skerry-fuzz-canary";

const segment = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", "..", ".", "", "link", "loop", "up", "gone") },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "~",
      "~root",
      "$HOME",
      "-rf",
      "*",
      "\n",
      "\\",
      "x".repeat(256),
      "ü",
      "\u202e",
      "\ud800",
      "a\0b",
      "%2e%2e",
      "🦀",
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
);
const anyPath = fc
  .tuple(fc.constantFrom("", "/", "~/", "./", `${ROOT}/`), fc.array(segment, { maxLength: 6 }))
  .map(([start, rest]) => start + rest.join("/"));
/** A path below ROOT, as text. Symbolic links may lead elsewhere in the sandbox. */
const ownPath = fc
  .array(segment, { minLength: 1, maxLength: 6 })
  .map((rest) => `${ROOT}/${rest.join("/")}`)
  .filter((path) => posix.normalize(path).startsWith(`${ROOT}/`) && posix.normalize(path) !== `${ROOT}/`);

describe.each(runtimesFor("random input to an agent"))("an agent on %s survives", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  let id: string;
  let headers: Record<string, string>;
  beforeAll(async () => {
    writeFileSync(CANARY, "of the host");
    platform = await sharedPlatform(runtime);
    const { body } = await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 3600 } });
    const created = body as { sandboxID: string; envdAccessToken: string };
    id = created.sandboxID;
    headers = { "E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "49983", "X-Access-Token": created.envdAccessToken };
    sandbox = await Sandbox.connect(id, clientOf(platform));
    await sandbox.commands.run(
      `mkdir -p ${ROOT}/a/b && cd ${ROOT} && ln -s a link && ln -s loop loop && ln -s .. up && ln -s /nonexistent gone && echo text > a/file`,
    );
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
    rmSync(CANARY, { force: true });
  });
  afterEach(async () => {
    expect((await sandbox.commands.run("echo alive")).stdout).toBe("alive\n");
    expect(readFileSync(CANARY, "utf8")).toBe("of the host");
    expect((await sandbox.commands.run(`test -e ${CANARY} || echo not here`)).stdout).toBe("not here\n");
  });

  const transport = () =>
    createConnectTransport({
      baseUrl: platform.edgeUrl,
      httpVersion: "1.1",
      // Binary, because the JSON codec rejects lone surrogates before they are sent.
      useBinaryFormat: true,
      interceptors: [
        (next) => (request) => {
          for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
          return next(request);
        },
      ],
    });

  /** A call may fail only with its documented codes. `unavailable` would mean that the agent has crashed. */
  async function answered(call: Promise<unknown>): Promise<void> {
    try {
      await call;
    } catch (error) {
      const { code, rawMessage } = ConnectError.from(error);
      expect([Code.InvalidArgument, Code.NotFound, Code.AlreadyExists, Code.FailedPrecondition, Code.Internal], rawMessage).toContain(code);
    }
  }

  it("paths of every kind in calls that read", async () => {
    const filesystem = createClient(Filesystem, transport());
    await fc.assert(
      fc.asyncProperty(anyPath, async (path) => {
        const encodable = path.toWellFormed();
        await answered(filesystem.stat({ path: encodable }));
        await answered(filesystem.listDir({ path: encodable, depth: 1 }));
        const response = await fetch(`${platform.edgeUrl}/files?${new URLSearchParams({ path })}`, { headers });
        expect(response.status).not.toBe(502);
        await response.body?.cancel();
      }),
      { numRuns: RUNS },
    );
  });

  it("paths of every kind in calls that change files", async () => {
    const filesystem = createClient(Filesystem, transport());
    await fc.assert(
      fc.asyncProperty(ownPath, ownPath, fc.constantFrom("make", "move", "remove", "upload"), async (first, second, operation) => {
        const [path, destination] = [first.toWellFormed(), second.toWellFormed()];
        if (operation === "make") await answered(filesystem.makeDir({ path }));
        if (operation === "move") await answered(filesystem.move({ source: path, destination }));
        if (operation === "remove") await answered(filesystem.remove({ path }));
        if (operation !== "upload") return;
        const url = `${platform.edgeUrl}/files?${new URLSearchParams({ path })}`;
        const type = { "Content-Type": "application/octet-stream" };
        expect((await fetch(url, { method: "POST", headers: { ...headers, ...type }, body: "bytes" })).status).not.toBe(502);
      }),
      { numRuns: RUNS },
    );
  });

  it("programs, arguments, variables and folders of every kind", async () => {
    const service = createClient(Process, transport());
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 30 }),
      fc.constantFrom("", "/", "true", "a\0b", "\ud800", "x".repeat(70_000)),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(text, fc.constantFrom("true", "/bin/sh")),
        fc.array(text, { maxLength: 3 }),
        fc.dictionary(text, text, { maxKeys: 3 }),
        fc.option(anyPath, { nil: undefined }),
        async (cmd, args, envs, cwd) => {
          const wellFormed = Object.fromEntries(Object.entries(envs).map(([key, value]) => [key.toWellFormed(), value.toWellFormed()]));
          const process = {
            cmd: cmd.toWellFormed(),
            args: args.map((one) => one.toWellFormed()),
            envs: wellFormed,
            ...(cwd && { cwd: cwd.toWellFormed() }),
          };
          const drain = async () => {
            for await (const { event } of service.start({ process, stdin: false }, { timeoutMs: 10_000 }))
              if (event?.event.case === "end") return;
          };
          await answered(drain());
        },
      ),
      { numRuns: Math.ceil(RUNS / 2) },
    );
  });

  it("names that are not UTF-8, and devices, pipes and sockets where files are expected", async () => {
    await sandbox.commands.run(
      `mkdir -p ${ROOT}/odd && cd ${ROOT}/odd && python3 -c 'import os, socket
os.mkdir(b"\\xff\\xfe"); open(b"\\xc3(", "w").close(); os.mkfifo("pipe"); socket.socket(socket.AF_UNIX).bind("socket"); open("plain", "w").close()'`,
    );
    expect((await sandbox.files.list(`${ROOT}/odd`)).map(({ name }) => name)).toContain("plain");
    for (const name of ["pipe", "socket"]) {
      const response = await fetch(`${platform.edgeUrl}/files?path=${ROOT}/odd/${name}`, {
        headers,
        signal: AbortSignal.timeout(3_000),
      }).catch(() => undefined);
      await response?.body?.cancel();
    }
    await sandbox.files.remove(`${ROOT}/odd`);
    expect(await sandbox.files.exists(`${ROOT}/odd`)).toBe(false);
  });

  it("links that change during a call, and stays in its own root", async () => {
    await sandbox.commands.run(`mkdir -p ${ROOT}/race/dir && cd ${ROOT}/race && ln -s dir target`);
    const racing = await sandbox.commands.run(
      `cd ${ROOT}/race && while :; do ln -sfn / target; ln -sfn dir target; ln -sfn /proc/1/root target; ln -sfn ../../../../../../../../tmp target; done`,
      { background: true, timeoutMs: 0 },
    );
    for (let round = 0; round < 15; round += 1) {
      const results = await Promise.allSettled([
        sandbox.files.write(`${ROOT}/race/target/written`, "x"),
        sandbox.files.list(`${ROOT}/race/target`),
        sandbox.files.read(`${ROOT}/race/target/etc/hostname`).then((name) => expect(name.trim()).toBe("sandbox")),
        sandbox.files.makeDir(`${ROOT}/race/target/made/deep`),
        sandbox.files.remove(`${ROOT}/race/target/made`),
      ]);
      for (const result of results) {
        if (result.status === "rejected") expect(String(result.reason)).not.toMatch(/AssertionError|TimeoutError|502/);
      }
    }
    await racing.kill();
  });
});
