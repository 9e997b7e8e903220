import type { LogLine } from "@skerry/store";
import { type Static, Type } from "typebox";
import { DateTime, StringMap } from "../../schemas.ts";

export const MAX_LINES = 1000;

const LEVELS = [Type.Literal("debug"), Type.Literal("info"), Type.Literal("warn"), Type.Literal("error")] as const;

export const LevelSchema = Type.Union([...LEVELS], { description: "The lowest level of the entries." });

const at = DateTime("When it was written. No two entries of a sandbox have the same time.");

export const LogEntrySchema = Type.Object(
  {
    timestamp: at,
    message: Type.String(),
    level: Type.Union([...LEVELS]),
    fields: StringMap("More about it. `logger` says who wrote it: `platform`, `agent`, or `process` for output of processes."),
  },
  { title: "SandboxLogEntry" },
);

export const LogLineSchema = Type.Object(
  { timestamp: at, line: Type.String({ description: "The entry as JSON, with `level`, `logger` and `message`." }) },
  { title: "SandboxLog" },
);

export function encodeEntry({ at: time, message, level, logger, fields }: LogLine): Static<typeof LogEntrySchema> {
  return { timestamp: new Date(time).toISOString(), message, level, fields: { ...fields, logger } };
}

/** The command line parses each line, and needs `level` and `logger` in it. So these come last, whatever the fields are called. */
export function encodeLine({ at: time, message, level, logger, fields }: LogLine): Static<typeof LogLineSchema> {
  return { timestamp: new Date(time).toISOString(), line: JSON.stringify({ ...fields, level, logger, message }) };
}
