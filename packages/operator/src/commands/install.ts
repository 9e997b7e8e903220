import { rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import {
  createDataFolder,
  type DataFolder,
  dataDirOf,
  keptSite,
  OperatorError,
  readSettings,
  resolveSettings,
  type SettingOptions,
  takeSetupLock,
  writeJsonFile,
} from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { findDaemon } from "../daemon/find-daemon.ts";
import { assertPortsFree } from "../daemon/free-ports.ts";
import { requireRoot } from "../require-root.ts";
import { environmentText, type Service, serviceOf, unitText } from "../service/unit.ts";
import { createSteps } from "../terminal/steps.ts";
import { interruptible, prepareMachine, printConnection, tryFirstSandbox } from "./start-platform.ts";

export interface InstallOptions extends SettingOptions {
  readonly data?: string;
  readonly name?: string;
}

/** Setting up and starting a platform on a slow host. */
const START_MS = 900_000;
const STOP_MS = 420_000;

/** Sets up the platform, and a systemd service that starts it now and at every boot. */
export async function install(context: OperatorContext, options: InstallOptions): Promise<void> {
  const startedAt = performance.now();
  requireRoot("install");
  await assertSystemd();
  const folder = await createDataFolder(dataDirOf(options.data, context.env));
  const unit = serviceOf(folder.root, options.name);
  const last = await readSettings(folder);
  const settings = resolveSettings(options, context.env, last);
  await assertSameSettings(folder, last, settings);
  const site = await keptSite(folder, context.env);
  const steps = createSteps();
  await interruptible(async (signal) => {
    await using _lock = await takeSetupLock(folder.lockFile);
    if (!(await findDaemon(folder))) await assertPortsFree(settings);
    await prepareMachine({ context: { ...context, env: site.env }, folder, settings, steps, signal });
    await writeJsonFile(folder.settingsFile, settings);
    await site.keep();
  });
  await steps.run(
    "service",
    () => enable(context, folder, unit),
    () => `${unit.name}, starts at boot`,
  );
  await tryFirstSandbox({ folder, settings, steps });
  printConnection(folder, settings, performance.now() - startedAt);
  process.stdout.write(`The service ${unit.name} runs the platform: systemctl status ${unit.name}, and ./skerry uninstall to remove it.\n`);
}

/** Stops the service and removes it. The data stays, and so do the sandboxes that run. */
export async function uninstall(context: OperatorContext, options: { readonly data?: string; readonly name?: string }): Promise<void> {
  requireRoot("uninstall");
  await assertSystemd();
  const dataDir = dataDirOf(options.data, context.env);
  const unit = serviceOf(dataDir, options.name);
  if (!(await exists(unit.unitFile))) {
    throw new OperatorError(`there is no service ${unit.name}`, { hints: ["If it has another name, give it with --name."] });
  }
  await createSteps().run(
    "service",
    async () => {
      await systemctl(STOP_MS, "disable", "--now", `${unit.name}.service`);
      await rm(unit.unitFile);
      await rm(unit.environmentFile, { force: true });
      await systemctl(START_MS, "daemon-reload");
    },
    () => `removed ${unit.name}`,
  );
  process.stdout.write(
    `Sandboxes keep running without the platform. Run ./skerry up to manage them again, or ./skerry down to kill them.\n`,
  );
}

async function enable(context: OperatorContext, folder: DataFolder, unit: Service): Promise<void> {
  const program = join(context.repoRoot, "skerry");
  await writeFile(unit.unitFile, unitText(unit, { program, dataDir: folder.root }), { mode: 0o644 });
  await writeFile(unit.environmentFile, environmentText({ ...context.env, SKERRY_DATA: undefined }), { mode: 0o600 });
  await systemctl(START_MS, "daemon-reload");
  await systemctl(START_MS, "enable", "--now", `${unit.name}.service`);
}

async function systemctl(timeoutMs: number, ...args: string[]): Promise<void> {
  await runCommand("systemctl", args, { timeoutMs });
}

async function assertSystemd(): Promise<void> {
  // The documented sign that systemd is the init system (sd_booted).
  if (await exists("/run/systemd/system")) return;
  throw new OperatorError("this host does not run systemd, which starts the service", {
    exit: "unfit",
    hints: ["Let your service manager run `./skerry service --data DIR`, and `./skerry suspend` before the host goes down."],
  });
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

async function assertSameSettings(folder: DataFolder, last: unknown, wanted: unknown): Promise<void> {
  if (!(await findDaemon(folder)) || JSON.stringify(last) === JSON.stringify(wanted)) return;
  throw new OperatorError("the platform is running with other settings", {
    hints: ["Run ./skerry restart with the same options first. Sandboxes keep running."],
  });
}
