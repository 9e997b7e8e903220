import type { DataFolder } from "@skerry/setup/folder";
import { type PlatformSettings, readSettings, waitForSetupLock } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { keepUp } from "../daemon/keep-up.ts";
import { startDaemon } from "../daemon/start-daemon.ts";
import { followLog } from "../terminal/follow-log.ts";
import { createSteps } from "../terminal/steps.ts";
import { painter } from "../terminal/text.ts";
import { shutDown } from "./down.ts";

export interface ForegroundOptions {
  readonly context: OperatorContext;
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly signal: AbortSignal;
}

/** Shows the log and restarts the platform after a crash. On Ctrl-C it stops the platform and kills every sandbox. */
export async function stayInForeground({ context, folder, settings, signal }: ForegroundOptions): Promise<void> {
  const paint = painter(process.stdout);
  const { mainScript, env } = context;
  process.stdout.write(`${paint("dim", "Showing the log. Press Ctrl-C to stop the platform and kill every sandbox.")}\n`);
  const over = new AbortController();
  const following = followLog(folder.logFile, { lines: 0, follow: over.signal, json: false });
  following.catch(() => {});
  let outcome: "interrupted" | "ended";
  try {
    outcome = await keepUp({
      folder,
      // `restart` may have changed them.
      start: async () => startDaemon(folder, { settings: (await readSettings(folder)) ?? settings, mainScript, env, signal }),
      say: (text) => process.stdout.write(`${paint("warn", "!")} ${text}\n`),
      signal,
    });
  } finally {
    over.abort();
    await following;
  }
  if (outcome === "ended") return;
  const steps = createSteps();
  await using lock = await waitForSetupLock(folder);
  if (!lock) return;
  await shutDown(context, folder, steps);
}
