import { open } from "node:fs/promises";

export interface LoggedError {
  readonly time: string;
  readonly message: string;
  /** Of the error itself, in one line. */
  readonly error: string | null;
}

const SHOWN = 3;
/** Of the end of the log. */
const LOOKED_THROUGH_BYTES = 1024 * 1024;
const ERROR_LEVEL = 50;
const MAX_TEXT = 200;

/** The newest errors of a log, oldest first; none if it cannot be read. */
export async function lastErrors(logFile: string): Promise<readonly LoggedError[]> {
  try {
    await using file = await open(logFile, "r");
    const { size } = await file.stat();
    const length = Math.min(size, LOOKED_THROUGH_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString("utf8").split("\n").flatMap(errorIn).slice(-SHOWN);
  } catch {
    return [];
  }
}

function errorIn(line: string): readonly LoggedError[] {
  if (!line.includes('"level":50') && !line.includes('"level":60')) return [];
  try {
    const { level, time, msg, err } = JSON.parse(line) as { level?: number; time?: string; msg?: string; err?: { message?: string } };
    if (level === undefined || level < ERROR_LEVEL) return [];
    const error = err?.message?.split("\n")[0]?.slice(0, MAX_TEXT) ?? null;
    return [{ time: time ?? "", message: (msg ?? "").slice(0, MAX_TEXT), error }];
  } catch {
    return [];
  }
}
