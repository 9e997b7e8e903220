import { runCommand } from "@skerry/base";
import {
  clientUrls,
  createDataFolder,
  type DataFolder,
  dataDirOf,
  keptSite,
  OperatorError,
  type PlatformSettings,
  readSettings,
  takeSetupLock,
  waitForSetupLock,
} from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { findDaemon } from "../daemon/find-daemon.ts";
import { keepUp } from "../daemon/keep-up.ts";
import { startDaemon } from "../daemon/start-daemon.ts";
import { stopDaemon } from "../daemon/stop-daemon.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";
import { interruptible, prepareMachine } from "./start-platform.ts";

/** What the systemd service runs: starts the platform, and again after a crash, until it is told to stop. Sandboxes survive the stop. */
export async function service(context: OperatorContext, options: { readonly data?: string }): Promise<void> {
  requireRoot("service");
  const folder = await createDataFolder(dataDirOf(options.data, context.env));
  const settings = await readSettings(folder);
  if (!settings) throw new OperatorError(`there is no platform in ${folder.root}`, { hints: ["To make one, run ./skerry install."] });
  const site = await keptSite(folder, context.env);
  const about = { context: { ...context, env: site.env }, folder };
  try {
    await interruptible((signal) => run({ ...about, settings, signal }));
  } catch (error) {
    if (!(error instanceof OperatorError && error.exit === "interrupted")) throw error;
    await using lock = await waitForSetupLock(folder);
    if (!lock) return;
    const outcome = await stopDaemon(folder);
    // A suspend may have stopped it before.
    if (outcome !== "was not running") process.stdout.write(`The platform ${outcome}. Sandboxes keep running.\n`);
  }
}

interface Run {
  readonly context: OperatorContext;
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly signal: AbortSignal;
}

async function run({ context, folder, settings, signal }: Run): Promise<void> {
  const { mainScript, env } = context;
  const start = (wanted: PlatformSettings) => startDaemon(folder, { settings: wanted, mainScript, env, signal });
  // A platform that is running already is taken over.
  if (!(await findDaemon(folder))) {
    await using _lock = await takeSetupLock(folder.lockFile, { wait: true });
    await prepareMachine({ context, folder, settings, steps: createSteps(), signal });
    await start(settings);
  }
  await tellSystemd(env, `API ${clientUrls(settings).api}`);
  const outcome = await keepUp({
    folder,
    // `restart` may have changed the settings.
    start: async () => start((await readSettings(folder)) ?? settings),
    say: (text) => process.stdout.write(`${text}\n`),
    signal,
  });
  if (outcome === "interrupted") signal.throwIfAborted();
}

/** Without systemd, nobody has to be told. */
async function tellSystemd(env: OperatorContext["env"], status: string): Promise<void> {
  const { NOTIFY_SOCKET, PATH } = env;
  if (!NOTIFY_SOCKET) return;
  await runCommand("systemd-notify", ["--ready", `--status=${status}`], { env: { NOTIFY_SOCKET, PATH: PATH ?? "/usr/bin:/bin" } });
}
