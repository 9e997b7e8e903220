// secrets.json and its copy are lost on a platform with sandboxes. The test follows the instructions in the messages.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand, SubprocessError } from "@skerry/base";
import { type Platform, startPlatform } from "@skerry/testkit";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { Sandbox } from "e2b";
import { expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

const CHECKOUT = join(import.meta.dirname, "../..");

async function messageOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(() => undefined).catch((cause: unknown) => cause);
  return error instanceof SubprocessError ? error.stderr : String(error);
}

/** Runs the command that a message names, as a person would type it. */
async function runAdvised(message: string, pattern: RegExp): Promise<string> {
  const command = message.match(pattern)?.[1] ?? "";
  expect(command, message).not.toBe("");
  const { stdout } = await runCommand("sh", ["-c", command], { cwd: CHECKOUT, timeoutMs: 60_000 });
  return stdout;
}

const secretsOf = ({ dataDir }: Platform) => JSON.parse(readFileSync(join(dataDir, "secrets.json"), "utf8")) as Platform["secrets"];

it("with new secrets the platform keeps everything that it has, and rejects the lost key", async () => {
  await using platform = await startPlatform();
  const env = () => new SkerryCommand(platform.dataDir).run("env");
  const client = clientOf(platform);
  const running = await Sandbox.create(client);
  const paused = await Sandbox.create(client);
  for (const sandbox of [running, paused]) await sandbox.files.write("/dev/shm/mark", sandbox.sandboxId);
  await paused.pause();
  const snapshot = await running.createSnapshot();
  await platform.stop();

  for (const name of ["secrets.json", "secrets.backup.json"]) writeFileSync(join(platform.dataDir, name), "");
  expect(await messageOf(platform.start())).toContain("run ./skerry up, which creates it or says what to do");
  const said = await runAdvised(await messageOf(env()), /: (\.\/skerry renew-secrets .*)/);
  expect(said).toContain("./skerry up");
  await platform.start();
  expect((await callApi(platform, "/sandboxes")).status).toBe(401);
  await expectAll(platform, { running, paused, snapshotId: snapshot.snapshotId });
});

/** The new key gives access to everything, with its memory. A running sandbox gets its new token with the next pause and resume. */
async function expectAll(platform: Platform, has: { running: Sandbox; paused: Sandbox; snapshotId: string }): Promise<void> {
  const renewed = { ...clientOf(platform), apiKey: secretsOf(platform).apiKey };
  const expectMark = async (sandboxId: string) =>
    expect(await (await Sandbox.connect(sandboxId, renewed)).files.read("/dev/shm/mark")).toBe(sandboxId);
  await expectMark(has.paused.sandboxId);
  const early = await Sandbox.connect(has.running.sandboxId, renewed);
  await expect(early.files.read("/dev/shm/mark")).rejects.toThrow();
  await early.pause();
  await expectMark(has.running.sandboxId);
  expect((await Sandbox.listSnapshots(renewed).nextItems()).map(({ snapshotId }) => snapshotId)).toEqual([has.snapshotId]);
}
