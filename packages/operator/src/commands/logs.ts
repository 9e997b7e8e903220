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

/** Prints the platform's log. */
export async function logs(context: OperatorContext, options: LogsOptions): Promise<void> {
  if (!/^\d{1,7}$/.test(options.lines)) throw new OperatorError(`invalid number of lines: -n "${options.lines}"`, { exit: "usage" });
  const { logFile } = dataFolder(dataDirOf(options.data, context.env));
  try {
    await access(logFile);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EACCES") {
      throw new OperatorError(`only root can read ${logFile}`, { exit: "notRoot", hints: ["Run this command as root (sudo)."], cause });
    }
    throw new OperatorError(`${logFile} does not exist`, { exit: "notRunning", hints: ["To start the platform, run ./skerry up."], cause });
  }
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  // A reader such as `head` may close the pipe first.
  process.stdout.once("error", () => process.exit(0));
  await followLog(logFile, { lines: Number(options.lines), follow: options.follow ? stop.signal : undefined, json: options.json ?? false });
}
