// Where commands on users, teams and keys write: what a script needs to stdout, and sentences for people to stderr.

import { formatTable } from "../terminal/table.ts";
import { printable } from "../terminal/text.ts";
import type { AccountOptions } from "./accounts-client.ts";

/** Prints a list as a table, or as JSON. `none` says what an empty one means. */
export function printList<T>(
  entries: readonly T[],
  how: AccountOptions & { readonly columns: readonly string[]; readonly row: (entry: T) => readonly string[]; readonly none: string },
): void {
  if (how.json) {
    printJson(entries);
    return;
  }
  process.stdout.write(formatTable([how.columns, ...entries.map(how.row)]));
  if (entries.length === 0) note(how.none);
}

/** Prints the id or the secret of what was made, alone on its line, so that a script can take it; or all of it as JSON. */
export function printMade(
  made: { readonly value: string; readonly about: string; readonly whole: object },
  { json }: AccountOptions,
): void {
  if (json) printJson(made.whole);
  else process.stdout.write(`${printable(made.value)}\n`);
  note(made.about);
}

/** Prints what is known of one thing as lines of names and values. Values without text are left out. */
export function printFields(fields: Readonly<Record<string, string>>): void {
  const shown = Object.entries(fields).filter(([, value]) => value !== "");
  const width = Math.max(...shown.map(([name]) => name.length));
  for (const [name, value] of shown) {
    process.stdout.write(`${name.padEnd(width)}  ${printable(value).replaceAll(/[\t\n]/g, " ")}\n`);
  }
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

export function note(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** A time of the API, to the minute. */
export function minute(time: string | undefined): string {
  return time === undefined ? "-" : time.slice(0, 16).replace("T", " ");
}
