// Users and groups as the guest's files say right now: a guest may add one at any time, so nothing is kept.

import { readFileSync } from "node:fs";
import { type GroupEntry, type PasswdEntry, parseGroup, parsePasswd } from "./parse.ts";

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

/** An image without /etc/passwd still has a root. */
const ROOT: PasswdEntry = { name: "root", uid: 0, gid: 0, home: "/root" };

export class UnknownUserError extends Error {
  constructor(name: string) {
    super(`user: unknown user ${name}`);
    this.name = "UnknownUserError";
  }
}

export function findUser(name: string): User {
  const entry = readPasswd().find((candidate) => candidate.name === name) ?? (name === ROOT.name ? ROOT : undefined);
  if (!entry) throw new UnknownUserError(name);
  const groups = readGroups()
    .filter((group) => group.members.includes(name))
    .map((group) => group.gid);
  return { ...entry, groups: [...new Set([entry.gid, ...groups])] };
}

/** Names for ids, for one request. */
export class NameTable {
  readonly #users: ReadonlyMap<number, string>;
  readonly #groups: ReadonlyMap<number, string>;

  constructor() {
    // The first entry of an id wins, as in the C library.
    this.#users = new Map([...readPasswd(), ROOT].reverse().map((entry) => [entry.uid, entry.name]));
    this.#groups = new Map(
      readGroups()
        .reverse()
        .map((entry) => [entry.gid, entry.name]),
    );
  }

  user(uid: number): string {
    return this.#users.get(uid) ?? String(uid);
  }

  group(gid: number): string {
    return this.#groups.get(gid) ?? String(gid);
  }
}

function readPasswd(): PasswdEntry[] {
  return parsePasswd(readText("/etc/passwd"));
}

function readGroups(): GroupEntry[] {
  return parseGroup(readText("/etc/group"));
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Absent in images without users; an unreadable file means the same to us.
    return "";
  }
}
