import type { BuildLogLevel } from "./build-logs.ts";

export interface LogLine {
  /** Milliseconds. The stored time may be later: no two lines of a sandbox have the same one. */
  readonly at: number;
  readonly level: BuildLogLevel;
  /** The part of the platform that says it, or `process` for output of the guest's processes. */
  readonly logger: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
  /** The guest wrote it, so it is removed first when the log is too long. */
  readonly isGuest: boolean;
}

export const MAX_MESSAGE_CHARACTERS = 8_192;
const MAX_FIELDS = 20;
const MAX_FIELD_CHARACTERS = 1_024;

/**
 * Bounds a line, and shows control characters in place of having them: a line is printed by terminals. PostgreSQL stores no NUL, and neither
 * database half a surrogate pair.
 */
export function boundedLine(line: LogLine): LogLine {
  const fields = Object.entries(line.fields).slice(0, MAX_FIELDS);
  return {
    ...line,
    logger: boundedText(line.logger, 64),
    message: boundedText(line.message, MAX_MESSAGE_CHARACTERS),
    fields: Object.fromEntries(fields.map(([name, value]) => [boundedText(name, 64), boundedText(value, MAX_FIELD_CHARACTERS)])),
  };
}

function boundedText(text: string, max: number): string {
  const short = text.length > max ? `${text.slice(0, max)}…` : text;
  return short.toWellFormed().replaceAll(/[^\P{Cc}\t\n]/gu, (control) => `\\x${control.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
