// Records are JSON files that outlive the program that wrote them. Each kind of record has a version, a schema for the current
// version, and a step from each earlier version to the next.
//
// The rule for other versions: an earlier record is upgraded in memory, and its file changes only when its content does. A record
// that is newer than this program, or older than its first step, is never interpreted: the program refuses to start and
// changes nothing.

import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { PlatformError } from "./error.ts";

/** The argument of a step: a record of the version before. Only the newest version is checked against a schema. */
// biome-ignore lint/suspicious/noExplicitAny: the shapes of earlier versions live on in their steps and fixtures alone
export type EarlierRecord = any;

export interface RecordKind<Schema extends TSchema = TSchema> {
  /** For messages: "sandbox", "image". */
  readonly name: string;
  /** Of the current version. Properties that it does not name are kept: a later program may have added optional ones. */
  readonly schema: Schema;
  readonly version: number;
  /** `steps[n]` returns version n + 1 of a record of version n. The first key is the oldest version that can be read. */
  readonly steps: Readonly<Record<number, (record: EarlierRecord) => object>>;
  /** The version of records without a `version` property; without it, such a record is damaged. */
  readonly unmarkedVersion?: number;
}

export type RecordOf<Kind extends RecordKind> = DeepReadonly<Static<Kind["schema"]>>;

type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/** `damaged`: the text is not JSON, or has not the shape of its version. */
export type ParsedRecord<T> = { readonly record: T } | "damaged";

/**
 * Parses records of one kind, and upgrades them to its current version. `file` is for messages.
 * Throws PlatformError("record_unreadable") for a version that this program does not know.
 */
export type RecordParser<T> = (text: string, file: string) => ParsedRecord<T>;

export function recordParser<Schema extends TSchema>(kind: RecordKind<Schema>): RecordParser<RecordOf<RecordKind<Schema>>> {
  // Compiled when the first record is read: not every process reads every kind.
  let check: { Check(value: unknown): boolean } | undefined;
  return (text, file) => {
    const record = upgrade(kind, parseJson(text), file);
    check ??= Compile(kind.schema as TSchema);
    return check.Check(record) ? { record: record as RecordOf<RecordKind<Schema>> } : "damaged";
  };
}

function upgrade(kind: RecordKind, found: EarlierRecord, file: string): unknown {
  if (found === null || typeof found !== "object") return undefined;
  const version = found.version ?? kind.unmarkedVersion;
  if (!Number.isInteger(version)) return undefined;
  if (version > kind.version) throw unreadable(kind, { file, version, what: "a later", instead: "start that version" });
  let record = found;
  for (let at = version; at < kind.version; at += 1) {
    const step = kind.steps[at];
    if (!step)
      throw unreadable(kind, { file, version, what: "an earlier", instead: "start that version, and pause or kill its sandboxes" });
    try {
      record = step(record);
    } catch (error) {
      // A step expects what a schema said then: TypeErrors tell of a damaged record.
      if (error instanceof TypeError) return undefined;
      throw error;
    }
  }
  return record;
}

interface Unreadable {
  readonly file: string;
  readonly version: number;
  readonly what: string;
  readonly instead: string;
}

function unreadable(kind: RecordKind, { file, version, what, instead }: Unreadable): PlatformError {
  const known = `this version reads up to version ${kind.version} of ${kind.name} records`;
  const why = `${file} has version ${version}, written by ${what} version of Skerry; ${known}`;
  return new PlatformError("record_unreadable", `${why}. Nothing was changed: ${instead}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
