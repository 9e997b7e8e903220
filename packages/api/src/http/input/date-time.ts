import { validationError } from "../../errors.ts";

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * The first whole millisecond at or after an RFC 3339 time with microseconds. The database stores whole milliseconds, so comparing with the
 * result gives the same answer as comparing with the microsecond.
 */
export function parseMillisecondsFrom(text: string, place: string): number {
  const match = RFC3339.exec(text);
  const seconds = match ? Date.parse(`${match[1]}T${match[2]}${match[4]?.toUpperCase()}`) : Number.NaN;
  if (!match || Number.isNaN(seconds)) throw validationError(`${place} must be a date and time as in RFC 3339`);
  const microseconds = Number((match[3] ?? "").padEnd(6, "0").slice(0, 6));
  return seconds + Math.ceil(microseconds / 1000);
}
