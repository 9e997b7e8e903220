// Logs of sandboxes, as the official command line reads them.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { prepareE2bCli } from "@skerry/testkit";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import { clientOf } from "./client.ts";

const folder = mkdtempSync(join(tmpdir(), "skerry-observe-"));
let platform: SharedPlatform;
let program: string;

beforeAll(async () => {
  platform = await sharedPlatform("gvisor");
  program = await prepareE2bCli();
});

afterAll(async () => {
  await platform?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function logsOf(id: string, ...args: string[]): Promise<{ level: string; logger: string; message: string }[]> {
  const env = { PATH: "/usr/bin:/bin", HOME: folder, NO_COLOR: "1", ...platform.env };
  const command = [program, "sandbox", "logs", id, "--format", "json", ...args];
  const { stdout } = await runCommand(process.execPath, command, { cwd: folder, env, timeoutMs: 100_000 });
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
}

it("tell the command line what became of a sandbox, also after its end", async () => {
  const sandbox = await Sandbox.create(clientOf(platform));
  const following = logsOf(sandbox.sandboxId, "--follow");
  // It stops when the sandbox is not running any more, and has read the log at least once by then, whenever it began.
  await sandbox.pause();
  await sandbox.connect();
  await sandbox.kill();
  const followed = await following;
  expect(followed.length === 0 || followed[0]?.message === "Sandbox started").toBe(true);
  const all = await logsOf(sandbox.sandboxId);
  const messages = ["Sandbox started", "Sandbox paused", "Sandbox resumed", "Sandbox killed, as requested"];
  expect(all.map(({ message }) => message)).toEqual(messages);
  expect(all.every(({ level, logger }) => level === "info" && logger === "platform")).toBe(true);
  expect(await logsOf(sandbox.sandboxId, "--level", "WARN")).toEqual([]);
  expect(await logsOf(sandbox.sandboxId, "--loggers", "process")).toEqual([]);
});
