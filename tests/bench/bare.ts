// The peers: the bare runtimes, without Skerry, on the root file system of the base template.

import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand, spawnCommand } from "@skerry/base";
import { writeProcessRecord } from "@skerry/setup/folder";
import { unmountBelow } from "@skerry/test-runner";
import { prepareTestCache } from "@skerry/testkit";

export type BareRuntime = "runsc" | "runc";
export const BARE_RUNTIMES: readonly BareRuntime[] = ["runsc", "runc"];

/** A bare runtime that runs commands in containers. */
export interface Bare extends AsyncDisposable {
  readonly name: BareRuntime;
  /** Matches the command lines or cgroups of its processes. */
  readonly processes: RegExp;
  /** Runs a new container until it ends. */
  run(): Promise<void>;
  /** Starts a container that keeps running. `exec` runs /bin/echo in it. */
  start(): Promise<{ exec(): Promise<void> }>;
}

export async function openBare(name: BareRuntime): Promise<Bare> {
  const cache = await prepareTestCache();
  const tools = JSON.parse(readFileSync(cache.toolsFile, "utf8")) as Record<BareRuntime, { path: string }>;
  const dir = join(cache.root, "runs", `bench-${name}-${randomBytes(4).toString("hex")}`);
  mkdirSync(dir, { recursive: true });
  await writeProcessRecord(join(dir, "owner.json"), process.pid);
  const echo = await makeBundle(join(dir, "echo"), { cacheRoot: cache.root, args: ["/bin/echo", "hello"] });
  const idle = await makeBundle(join(dir, "idle"), { cacheRoot: cache.root, args: ["/bin/sleep", "1000000"] });
  const binary = tools[name].path;
  const base = ["--root", join(dir, "state")];
  const family = `b${randomBytes(4).toString("hex")}`;
  const newId = () => family + randomBytes(6).toString("hex");
  const started: string[] = [];
  const call = (args: readonly string[]) => runCommand(binary, [...base, ...args], { timeoutMs: 60_000 });
  return {
    name,
    processes: new RegExp(family),
    async run() {
      const { stdout } = await call(["run", "--bundle", echo, newId()]);
      if (stdout !== "hello\n") throw new Error(`${name} run printed ${JSON.stringify(stdout)}`);
    },
    async start() {
      const id = newId();
      const child = spawnCommand(binary, [...base, "run", "--detach", "--bundle", idle, id]);
      started.push(id);
      const code = await new Promise((resolve) => child.once("exit", resolve));
      if (code !== 0) throw new Error(`${name} run --detach ended with exit code ${code}`);
      return {
        exec: async () => {
          await call(["exec", id, "/bin/echo", "hello"]);
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const id of started) await call(["delete", "--force", id]);
      // runsc leaves an empty network namespace mounted in its state folder.
      await unmountBelow(dir);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function makeBundle(dir: string, options: { cacheRoot: string; args: readonly string[] }): Promise<string> {
  mkdirSync(dir, { recursive: true });
  await runCommand("runc", ["spec", "--bundle", dir]);
  const file = join(dir, "config.json");
  const spec = JSON.parse(readFileSync(file, "utf8")) as { process: { args: string[]; terminal: boolean }; root: object };
  spec.process.args = [...options.args];
  spec.process.terminal = false;
  spec.root = { path: baseLayer(options.cacheRoot), readonly: true };
  writeFileSync(file, JSON.stringify(spec));
  return dir;
}

export function baseLayer(cacheRoot: string): string {
  const { layers } = JSON.parse(readFileSync(join(cacheRoot, "templates/base.json"), "utf8")) as { layers: string[] };
  const prefix = layers[0]?.slice("sha256:".length, "sha256:".length + 24);
  const found = readdirSync(join(cacheRoot, "layers")).find((name) => name === prefix);
  if (!found) throw new Error("the base layer is not in the cache");
  return realpathSync(join(cacheRoot, "layers", found));
}
