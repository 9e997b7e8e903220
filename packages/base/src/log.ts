import { pino } from "pino";
import { LogOutput } from "./log-output.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Writes JSON lines. The message is a constant phrase, and facts are fields (`sandbox_id`, `node_id`, `duration_ms`). No call throws or waits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

/** Writes to file descriptor `fd` (default 1). Errors in the field `err` keep their stack and cause. */
export function createLogger(options: { name: string; level: LogLevel; fd?: number }): Logger {
  const output = new LogOutput({
    fd: options.fd ?? 1,
    onDropped: (lines) => logger.warn({ lines }, "log lines were dropped: the disk is full, or the reader is too slow"),
  });
  const logger = pino({ level: options.level, base: { component: options.name }, timestamp: pino.stdTimeFunctions.isoTime }, output);
  return logger;
}
