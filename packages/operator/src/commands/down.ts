import { realpath } from "node:fs/promises";
import { createLogger } from "@skerry/base";
import { removeVolumes, volumesElsewhere } from "@skerry/node/folder";
import type { Steps } from "@skerry/setup";
import {
  type DataFolder,
  DEFAULT_DATA_DIR,
  dataDirOf,
  dataFolder,
  deleteDataFolder,
  OperatorError,
  readSettings,
  takeSetupLock,
} from "@skerry/setup/folder";
import type { CleanupCounts, OperatorContext } from "../context.ts";
import { stopDaemon } from "../daemon/stop-daemon.ts";
import { makeRoom } from "../make-room.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";

export interface DownOptions {
  readonly data?: string;
  readonly purge?: boolean;
}

/** Stops the platform and kills every sandbox. With `purge` it also deletes the data folder, and volumes elsewhere. */
export async function down(context: OperatorContext, options: DownOptions): Promise<void> {
  requireRoot("down");
  const dataDir = dataDirOf(options.data, context.env);
  const root = await realpath(dataDir).catch(() => undefined);
  if (root === undefined) {
    process.stdout.write(`Nothing to stop: ${dataDir} does not exist.\n`);
    return;
  }
  const folder = dataFolder(root);
  const steps = createSteps();
  {
    await using _lock = await takeSetupLock(folder.lockFile);
    await shutDown(context, folder, steps);
    if (options.purge) await purge(folder, steps);
  }
  process.stdout.write(
    options.purge
      ? "Skerry is down, and its data is deleted.\n"
      : `Skerry is down. Its data stays in ${root}; ./skerry down --purge deletes it.\n`,
  );
}

/** Stops the daemon first, so that it creates nothing new, then removes everything it created on this host. */
export async function shutDown(context: OperatorContext, folder: DataFolder, steps: Steps): Promise<void> {
  await makeRoom(folder);
  await steps.run(
    "platform",
    () => stopDaemon(folder),
    (outcome) => outcome,
  );
  await steps.run("cleanup", () => context.cleanup(folder.root), describeCleanup);
}

async function purge(folder: DataFolder, steps: Steps): Promise<void> {
  // Deletes only a folder that contains a platform: `--data /home` by mistake must not delete anybody's files.
  const known = (await readSettings(folder)) !== undefined;
  if (!known || folder.root.split("/").length < 3) {
    throw new OperatorError(`${folder.root} does not look like a data folder, so it was not deleted`, {
      hints: [`A data folder, such as ${DEFAULT_DATA_DIR}, contains settings.json. If you are sure, delete this one yourself.`],
    });
  }
  const elsewhere = volumesElsewhere(folder.nodeDir);
  if (elsewhere !== undefined) {
    await steps.run(
      "volumes",
      () => removeVolumes(folder.nodeDir, createLogger({ name: "purge", level: "warn", fd: 2 })),
      (count) => `deleted ${count} in ${elsewhere}`,
    );
  }
  await steps.run(
    "data",
    () => deleteDataFolder(folder),
    () => `deleted ${folder.root}`,
  );
}

function describeCleanup(counts: CleanupCounts): string {
  const found = Object.entries(counts).filter(([, count]) => Number(count) > 0);
  if (found.length === 0) return "nothing to remove";
  return `removed ${found.map(([kind, count]) => (count === true ? kind : `${count} ${kind}`)).join(", ")}`;
}
