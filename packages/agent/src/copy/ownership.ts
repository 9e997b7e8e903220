// Owner and mode of what is copied. A bad one is no error, because builds would fail that succeed with other builders; a warning says so.

import { findGroupId, findUser, UnknownUserError } from "../accounts/accounts.ts";

export interface Ownership {
  readonly uid: number;
  readonly gid: number;
  /** Undefined: each entry keeps the mode that it has in the archive. */
  readonly mode: number | undefined;
  readonly warnings: readonly string[];
}

const ROOT = { uid: 0, gid: 0 };
const MAX_ID = 0xfffffffe;

export function resolveOwnership({ owner, user, mode }: { owner: string; user: string; mode: string }): Ownership {
  const warnings: string[] = [];
  const ids = owners(owner === "" ? user : owner);
  if (!ids) warnings.push(`the owner '${owner === "" ? user : owner}' does not exist: the files belong to root`);
  const isOctal = /^[0-7]{1,5}$/.test(mode) && Number.parseInt(mode, 8) <= 0o7777;
  if (mode !== "" && !isOctal) warnings.push(`the mode '${mode}' is not an octal number: the files keep their modes`);
  return { ...(ids ?? ROOT), mode: isOctal ? Number.parseInt(mode, 8) : undefined, warnings };
}

/** "user", "user:group", "user:" or ":group", as names or numbers. */
function owners(text: string): { uid: number; gid: number } | undefined {
  const [user = "", group, ...rest] = text.split(":");
  if (rest.length > 0 || (user === "" && !group)) return undefined;
  const account = user === "" ? ROOT : accountOf(user);
  if (!account) return undefined;
  // `u` is short for `u:u`. Where no group has the user's name, the user's own group is meant.
  const gid = group === undefined ? (groupOf(user) ?? account.gid) : group === "" ? account.gid : groupOf(group);
  return gid === undefined ? undefined : { uid: account.uid, gid };
}

function accountOf(name: string): { uid: number; gid: number } | undefined {
  try {
    return findUser(name);
  } catch (error) {
    if (!(error instanceof UnknownUserError)) throw error;
    const id = numericId(name);
    return id === undefined ? undefined : { uid: id, gid: id };
  }
}

function groupOf(name: string): number | undefined {
  return findGroupId(name) ?? numericId(name);
}

function numericId(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) && Number(text) <= MAX_ID ? Number(text) : undefined;
}
