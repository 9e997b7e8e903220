import { request } from "node:http";
import { runCommand } from "@skerry/base";
import { clientUrls, dataDirOf, dataFolder, EXIT_CODES, OperatorError, readSecrets, readSettings } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { findDaemon, isHealthy } from "../daemon/find-daemon.ts";
import { stopDaemon } from "../daemon/stop-daemon.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";

export interface SuspendOptions {
  readonly data?: string;
  /** Seconds. */
  readonly within: string;
  /** Does nothing unless the host is going down. */
  readonly atShutdown?: boolean;
}

interface SuspendResult {
  readonly pausedCount: number;
  readonly withoutMemory: readonly string[];
  readonly stillRunning: readonly string[];
}

/** Pauses every sandbox with its memory and stops the platform. The next start resumes the sandboxes with the time that they had left. */
export async function suspend(context: OperatorContext, options: SuspendOptions): Promise<void> {
  requireRoot("suspend");
  if (!/^\d{1,5}$/.test(options.within)) throw new OperatorError("--within takes a number of seconds", { exit: "usage" });
  if (options.atShutdown && !(await isHostGoingDown())) return;
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const settings = await readSettings(folder);
  if (!settings || !(await findDaemon(folder))) {
    process.stdout.write("Nothing to suspend: the platform is not running.\n");
    return;
  }
  const { api } = clientUrls(settings);
  if (!(await isHealthy(api))) {
    throw new OperatorError("the platform does not answer, so its sandboxes cannot be suspended", {
      hints: ["They keep running. Run ./skerry restart first."],
    });
  }
  const { adminToken } = await readSecrets(folder);
  const steps = createSteps();
  let result: SuspendResult | undefined;
  await steps.run(
    "sandboxes",
    async () => {
      result = await requestSuspend(api, { adminToken, withinSeconds: Number(options.within) });
      return result;
    },
    ({ pausedCount }) => `${pausedCount} paused`,
  );
  await steps.run(
    "platform",
    () => stopDaemon(folder),
    (outcome) => outcome,
  );
  if (result?.withoutMemory.length) steps.warn(`Paused without their memory: ${result.withoutMemory.join(", ")}`);
  if (result?.stillRunning.length) {
    steps.warn(`Could not be paused, and still run: ${result.stillRunning.join(", ")}`);
    process.exitCode = EXIT_CODES.failed.code;
  }
  process.stdout.write("The next start of the platform resumes its sandboxes.\n");
}

/** Not `fetch`, which gives up after five minutes without an answer. */
async function requestSuspend(api: string, about: { adminToken: string; withinSeconds: number }): Promise<SuspendResult> {
  const body = JSON.stringify({ withinSeconds: about.withinSeconds });
  const headers = { "X-Admin-Token": about.adminToken, "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
  return await new Promise((resolve, reject) => {
    const call = request(`${api}/admin/suspend`, { method: "POST", headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (response.statusCode === 200) resolve(JSON.parse(text) as SuspendResult);
        else reject(new OperatorError(`the platform refused to suspend its sandboxes (${response.statusCode}): ${text.slice(0, 500)}`));
      });
    });
    call.once("error", reject);
    call.end(body);
  });
}

/** What systemd says while it stops services for a shutdown or a reboot. */
async function isHostGoingDown(): Promise<boolean> {
  const { stdout } = await runCommand("systemctl", ["show", "--property=SystemState"], { timeoutMs: 10_000 });
  return stdout.trim() === "SystemState=stopping";
}
