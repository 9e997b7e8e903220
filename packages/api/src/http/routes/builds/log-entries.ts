import type { BuildLogLine } from "@skerry/store";
import { type Static, Type } from "typebox";
import { DateTime } from "../../schemas.ts";

export const MAX_LOG_PAGE = 100;

const LEVELS = [Type.Literal("debug"), Type.Literal("info"), Type.Literal("warn"), Type.Literal("error")] as const;

export const LevelSchema = Type.Union([...LEVELS], { description: "The lowest level of the entries." });

export const BuildLogEntrySchema = Type.Object(
  {
    timestamp: DateTime("When the line was written."),
    message: Type.String(),
    level: Type.Union([...LEVELS]),
    step: Type.Optional(Type.String({ description: "`base`, the number of the step, or `finalize`." })),
  },
  { title: "BuildLogEntry" },
);

export function encodeLogLine({ at, level, step, message }: BuildLogLine): Static<typeof BuildLogEntrySchema> {
  return { timestamp: new Date(at).toISOString(), message, level, ...(step === "" ? {} : { step }) };
}
