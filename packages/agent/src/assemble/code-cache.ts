// V8's code cache of the agent, recorded once per tree. Without it every sandbox would compile the agent from source. That would be
// a large part of the time to the first command, above all in gVisor, where each memory page costs more.
//
// Failure policy: V8 rejects a cache that does not match its version, flags or source, and compiles the source instead. So a stale
// or missing cache costs time but never gives wrong results.

import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PlatformError, spawnCommand } from "@skerry/base";
import { type AgentArch, nodeArguments } from "../command.ts";

const MAIN = "agent-main.js";
const CACHE = "agent-main.cache";
const RECORDER = "record.js";
/** Limit for recording as a whole, and for each request to the recorded agent. Only a hang takes this long. */
const TIME_LIMIT_MS = 30_000;

/** Source of a program that runs the bundle, with the code cache if there is one. `after` is code that may use `script`. */
function loader(after: string): string {
  return `"use strict";
const { readFileSync } = require("node:fs");
const { Script } = require("node:vm");
const filename = __dirname + "/${MAIN}";
let cachedData;
try { cachedData = readFileSync(__dirname + "/${CACHE}"); } catch {}
const wrapped = "(function (exports, require, module, __filename, __dirname) {" + readFileSync(filename, "latin1") + "\\n})";
const script = new Script(wrapped, { filename, cachedData });
script.runInThisContext()(exports, require, module, filename, __dirname);
${after}`;
}

/** Everything beside the bundle that determines its files, including the cache. It becomes part of the tree's digest. */
export function bundleRecipe(arch: AgentArch): string {
  return [loader(""), ...nodeArguments(arch, "")].join("\0");
}

/** Writes agent.js, the bundle and its cache. Preconditions: the tree holds all other files. */
export async function installBundle(tree: string, bundle: Uint8Array, arch: AgentArch): Promise<void> {
  await writeFile(join(tree, MAIN), bundle, { mode: 0o644 });
  await writeFile(join(tree, "agent.js"), loader(""), { mode: 0o644 });
  const recorder = join(tree, RECORDER);
  await writeFile(
    recorder,
    loader(
      `process.once("SIGTERM", () => { require("node:fs").writeFileSync(__dirname + "/${CACHE}", script.createCachedData(), { mode: 0o644 }); process.exit(0); });`,
    ),
  );
  try {
    await record(tree, arch);
  } finally {
    await rm(recorder, { force: true });
  }
}

// V8 caches only functions that ran. So the recorded agent handles the requests that the agent of a new sandbox gets first.
async function record(tree: string, arch: AgentArch): Promise<void> {
  const [command = "", ...args] = [...nodeArguments(arch, tree), join(tree, RECORDER), "--host", "127.0.0.1", "--port", "0", "--announce"];
  const agent = spawnCommand(command, args, { stdout: "pipe" });
  const timer = setTimeout(() => agent.kill("SIGKILL"), TIME_LIMIT_MS);
  const ended = new Promise<void>((resolve, reject) => {
    agent.once("error", reject);
    agent.once("exit", (code) =>
      code === 0
        ? resolve()
        : reject(new PlatformError("agent_broken", `the agent exited with code ${code} while its code cache was recorded`)),
    );
  });
  // `ended` is awaited below. Without this handler an earlier failure would be an unhandled rejection.
  ended.catch(() => {});
  try {
    if (!agent.stdout) throw new PlatformError("agent_broken", "the agent was started without an output pipe");
    for await (const port of createInterface({ input: agent.stdout })) {
      await exercise(`http://127.0.0.1:${port}`, tree);
      agent.kill("SIGTERM");
      break;
    }
    await ended;
  } finally {
    clearTimeout(timer);
    agent.kill("SIGKILL");
  }
}

async function exercise(url: string, tree: string): Promise<void> {
  await send(`${url}/health`, {});
  await send(`${url}/init`, { method: "POST", body: "{}" });
  const json = { "Content-Type": "application/json" };
  await send(`${url}/process.Process/List`, { method: "POST", headers: json, body: "{}" });
  await send(`${url}/filesystem.Filesystem/Stat`, { method: "POST", headers: json, body: JSON.stringify({ path: tree }) });
  await send(`${url}/files?path=${encodeURIComponent(join(tree, "agent.js"))}`, {});
  const start = Buffer.from(JSON.stringify({ process: { cmd: join(tree, "bin/tini"), args: ["--version"] }, stdin: false }));
  const envelope = Buffer.alloc(5 + start.length);
  envelope.writeUInt32BE(start.length, 1);
  start.copy(envelope, 5);
  await send(`${url}/process.Process/Start`, {
    method: "POST",
    headers: { "Content-Type": "application/connect+json" },
    body: new Uint8Array(envelope),
  });
}

async function send(url: string, request: RequestInit): Promise<void> {
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(TIME_LIMIT_MS) });
  await response.arrayBuffer();
  if (!response.ok) throw new PlatformError("agent_broken", `the agent answered ${response.status} to ${url}`);
}
