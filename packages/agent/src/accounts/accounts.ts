// Users and groups from the guest's /etc/passwd and /etc/group. A guest may change these files at any time.

import { type PasswdEntry, parseGroup, parsePasswd } from "./parse.ts";
import { ParsedFile } from "./parsed-file.ts";

export interface Credentials {
  readonly uid: number;
  readonly gid: number;
  /** Supplementary groups, the primary one included. */
  readonly groups: readonly number[];
}

export interface User extends Credentials {
  readonly name: string;
  readonly home: string;
}

const PASSWD = new ParsedFile("/etc/passwd", parsePasswd);
const GROUP = new ParsedFile("/etc/group", parseGroup);

/** The user root exists even in an image without /etc/passwd. */
const ROOT: PasswdEntry = { name: "root", uid: 0, gid: 0, home: "/root" };

export class UnknownUserError extends Error {
  constructor(name: string) {
    super(`user: unknown user ${name}`);
    this.name = "UnknownUserError";
  }
}

export function findUser(name: string): User {
  const entry = PASSWD.read().find((candidate) => candidate.name === name) ?? (name === ROOT.name ? ROOT : undefined);
  if (!entry) throw new UnknownUserError(name);
  const groups = GROUP.read()
    .filter((group) => group.members.includes(name))
    .map((group) => group.gid);
  return { ...entry, groups: [...new Set([entry.gid, ...groups])] };
}

export function findGroupId(name: string): number | undefined {
  return GROUP.read().find((group) => group.name === name)?.gid ?? (name === ROOT.name ? ROOT.gid : undefined);
}

/** Maps ids to names. Each request makes its own, because the files may change. */
export class NameTable {
  readonly #users: ReadonlyMap<number, string>;
  readonly #groups: ReadonlyMap<number, string>;

  constructor() {
    // The first entry of an id wins, as in the C library.
    this.#users = new Map([...PASSWD.read(), ROOT].reverse().map((entry) => [entry.uid, entry.name]));
    this.#groups = new Map([...GROUP.read()].reverse().map((entry) => [entry.gid, entry.name]));
  }

  user(uid: number): string {
    return this.#users.get(uid) ?? String(uid);
  }

  group(gid: number): string {
    return this.#groups.get(gid) ?? String(gid);
  }
}
