import { realpath, rm } from "node:fs/promises";
import type { Steps } from "@skerry/setup";
import { type DataFolder, DEFAULT_DATA_DIR, dataDirOf, dataFolder, OperatorError, readSettings, takeSetupLock } from "@skerry/setup/folder";
import type { CleanupCounts, OperatorContext } from "../context.ts";
import { stopDaemon } from "../daemon/stop-daemon.ts";
import { makeRoom } from "../make-room.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";

export interface DownOptions {
  readonly data?: string;
  readonly purge?: boolean;
}

/** Stops the platform and every sandbox; with `purge` the data folder goes too. */
export async function down(context: OperatorContext, options: DownOptions): Promise<void> {
  requireRoot("down");
  const dataDir = dataDirOf(options.data, context.env);
  const root = await realpath(dataDir).catch(() => undefined);
  if (root === undefined) {
    process.stdout.write(`Nothing to stop: there is no ${dataDir}.\n`);
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
    options.purge ? "Skerry is down; its data is gone.\n" : `Skerry is down. Its data is in ${root} (remove it too: down --purge).\n`,
  );
}

/** The daemon first, so that nothing new appears; then everything it made on this machine. */
export async function shutDown(context: OperatorContext, folder: DataFolder, steps: Steps): Promise<void> {
  await makeRoom(folder);
  await steps.run(
    "platform",
    () => stopDaemon(folder),
    (outcome) => outcome,
  );
  await steps.run("this machine", () => context.cleanup(folder.root), describeCleanup);
}

async function purge(folder: DataFolder, steps: Steps): Promise<void> {
  // Only ever a folder that a platform was set up in: `--data /home` by mistake must not cost anybody their files.
  const known = (await readSettings(folder)) !== undefined;
  if (!known || folder.root.split("/").length < 3) {
    throw new OperatorError(`${folder.root} does not look like a data folder of ours, so it was not removed`, {
      mend: [`A data folder (such as ${DEFAULT_DATA_DIR}) holds settings.json. Remove this one yourself if you are sure.`],
    });
  }
  await steps.run(
    "data",
    () => rm(folder.root, { recursive: true, force: true }),
    () => `removed ${folder.root}`,
  );
}

function describeCleanup(counts: CleanupCounts): string {
  const found = Object.entries(counts).filter(([, count]) => Number(count) > 0);
  if (found.length === 0) return "nothing was left";
  return `removed ${found.map(([kind, count]) => (count === true ? kind : `${kind} ${count}`)).join(", ")}`;
}
