import { readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { startPlatform } from "@skerry/testkit";
import { Sandbox } from "e2b";
import { expect, it } from "vitest";
import { clientOf } from "./client.ts";

/** Moves the database's files away, or back. */
function moveDatabase(dataDir: string, from: string, to: string): void {
  for (const name of readdirSync(dataDir)) {
    if (name.startsWith(from)) renameSync(join(dataDir, name), join(dataDir, name.replace(from, to)));
  }
}

it("a control plane on an empty database ends no sandbox, reports the problem, and works again on the right database", async () => {
  await using platform = await startPlatform();
  const sandbox = await Sandbox.create(clientOf(platform));
  await platform.stop();
  moveDatabase(platform.dataDir, "skerry.db", "away.db");
  await expect(platform.start()).rejects.toThrow("belong to another one");
  moveDatabase(platform.dataDir, "skerry.db", "empty.db");
  moveDatabase(platform.dataDir, "away.db", "skerry.db");
  await platform.start();
  expect((await sandbox.commands.run("echo here")).stdout).toBe("here\n");

  // A node that holds nothing can lose nothing, so it accepts the new database.
  await sandbox.kill();
  await platform.stop();
  moveDatabase(platform.dataDir, "skerry.db", "away.db");
  await platform.start();
  const other = await Sandbox.create(clientOf(platform));
  expect((await other.commands.run("echo new")).stdout).toBe("new\n");
  await other.kill();
});

it("a separate node refuses an API process on another database, and keeps its sandboxes", async () => {
  await using platform = await startPlatform({ roles: ["node", "api", "edge"] });
  const sandbox = await Sandbox.create(clientOf(platform));
  await platform.kill9("api");
  moveDatabase(platform.dataDir, "skerry.db", "away.db");
  await platform.start();
  await expect.poll(() => platform.logs()).toContain("is not taken in: is this the right database?");
  await expect(Sandbox.create(clientOf(platform))).rejects.toThrow("there is no machine to run it");
  await platform.kill9("api");
  moveDatabase(platform.dataDir, "skerry.db", "empty.db");
  moveDatabase(platform.dataDir, "away.db", "skerry.db");
  await platform.start();
  expect((await sandbox.commands.run("echo here")).stdout).toBe("here\n");
  await sandbox.kill();
});
