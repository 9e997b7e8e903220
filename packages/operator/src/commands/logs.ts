import { access } from "node:fs/promises";
import { dataDirOf, dataFolder, OperatorError } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { followLog } from "../terminal/follow-log.ts";

export interface LogsOptions {
  readonly data?: string;
  readonly follow?: boolean;
  readonly lines: string;
  readonly json?: boolean;
}

/** Shows the platform's log. */
export async function logs(context: OperatorContext, options: LogsOptions): Promise<void> {
  if (!/^\d{1,7}$/.test(options.lines)) throw new OperatorError(`-n takes a number of lines, not "${options.lines}"`, { exit: "usage" });
  const { logFile } = dataFolder(dataDirOf(options.data, context.env));
  try {
    await access(logFile);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EACCES") {
      throw new OperatorError(`${logFile} is for root alone`, { exit: "notRoot", mend: ["Run this as root (sudo)."], cause });
    }
    throw new OperatorError(`there is no log: ${logFile}`, { exit: "notRunning", mend: ["Start the platform: ./skerry up"], cause });
  }
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  // Read by `head` and the like: they end first, and that is fine.
  process.stdout.once("error", () => process.exit(0));
  await followLog(logFile, { lines: Number(options.lines), follow: options.follow ? stop.signal : undefined, json: options.json ?? false });
}
