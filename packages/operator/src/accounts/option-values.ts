// What options of commands on users, teams and keys mean. The API checks names of scopes and limits.

import { InvalidArgumentError } from "commander";

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A time such as `2030-01-01T00:00:00Z`, or a time from now such as `90d`, `12h` or `30m`, as the API takes it. */
export function readExpiry(text: string): string {
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(Date.now() + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]).toISOString();
  const isTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text);
  if (!isTime || Number.isNaN(Date.parse(text))) {
    throw new InvalidArgumentError("It must be a time such as 2030-01-01T00:00:00Z, or a time from now such as 90d, 12h or 30m.");
  }
  return new Date(text).toISOString();
}

/** Whole seconds of `7d`, `12h`, `30m` or a number of seconds. */
export function readSeconds(text: string): number {
  const [, count, unit] = /^(\d{1,9})([mhd]?)$/.exec(text) ?? [];
  if (count === undefined) throw new InvalidArgumentError("It must be a time such as 7d, 12h or 30m, or a number of seconds.");
  return Number(count) * (unit === "" ? 1 : UNIT_MS[unit as keyof typeof UNIT_MS] / 1000);
}

export function addValue(text: string, values: readonly string[] = []): readonly string[] {
  return [...values, text];
}

/** Adds `key=value`. */
export function addPair(text: string, pairs: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must have the form key=value.");
  return { ...pairs, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Adds `limit=number`, or `limit=none` for no limit. */
export function addLimit(text: string, limits: Readonly<Record<string, number | null>> = {}): Readonly<Record<string, number | null>> {
  const [, name, value] = /^([A-Za-z]+)=(\d{1,10}|none)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError("It must have the form limit=number, such as sandboxes=20, or limit=none.");
  }
  return { ...limits, [name]: value === "none" ? null : Number(value) };
}
