import { type Limits, limitEntries } from "@skerry/api";
import type { ConfigReader } from "@skerry/base";

/** Reads the limits of teams without a tier. Of a limit that is not set by default, 0 means none. */
export function readLimits(reader: ConfigReader): Limits {
  const read = limitEntries().map(([name, { setting, min, max, fallback }]) => {
    if (fallback !== null) return [name, reader.integer(setting, fallback, { min: Math.max(1, min), max })] as const;
    return [name, reader.integer(setting, 0, { min: 0, max }) || null] as const;
  });
  return Object.fromEntries(read) as Limits;
}
