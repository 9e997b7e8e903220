// Acts as a guest user for the duration of one synchronous call.
//
// Invariant: on return the thread is root again, or the process has aborted. Linux credentials belong to threads. Raw system calls
// change only those of the main thread, so the thread pool keeps working as root, and no other code runs on this thread in between.
// The saved uid stays 0, which allows the way back. execve replaces it by the effective uid, so a child has no way back.
//
// child_process with uid and gid was ruled out, because libuv then clears the supplementary groups.

import type { Credentials } from "../accounts/accounts.ts";
import { LibcError, libc } from "./libc.ts";

interface Numbers {
  readonly setgroups: number;
  readonly setresuid: number;
  readonly setresgid: number;
  readonly prctl: number;
}

const NUMBERS: Numbers =
  process.arch === "arm64"
    ? { setgroups: 159, setresuid: 147, setresgid: 149, prctl: 167 }
    : { setgroups: 116, setresuid: 117, setresgid: 119, prctl: 157 };

const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_CLEAR_ALL = 4;

let ambientCleared = false;
let ownGroups: readonly number[] | undefined;

export function asUser<T>(credentials: Credentials, action: () => T): T {
  ownGroups ??= process.getgroups?.() ?? [];
  clearAmbient();
  const isSelf = credentials.uid === 0 && credentials.gid === 0 && sameGroups(credentials.groups, ownGroups);
  // Without root rights (a test run by an ordinary user) the agent cannot act as another user.
  if (isSelf || process.geteuid?.() !== 0) return action();
  try {
    check("setgroups", setGroups(credentials.groups));
    check("setresgid", libc().syscall(NUMBERS.setresgid, credentials.gid, credentials.gid, 0));
    check("setresuid", libc().syscall(NUMBERS.setresuid, credentials.uid, credentials.uid, 0));
    return action();
  } finally {
    const restored =
      libc().syscall(NUMBERS.setresuid, 0, 0, 0) === 0 && libc().syscall(NUMBERS.setresgid, 0, 0, 0) === 0 && setGroups(ownGroups) === 0;
    // With another user's rights, every later request would get a wrong answer.
    if (!restored) process.abort();
  }
}

function setGroups(groups: readonly number[]): number {
  return libc().syscallPointer(NUMBERS.setgroups, groups.length, new Uint8Array(Uint32Array.from(groups).buffer));
}

// Ambient capabilities survive execve of an ordinary program. The kernel does not drop them while the saved uid is 0.
function clearAmbient(): void {
  if (ambientCleared) return;
  ambientCleared = true;
  libc().syscall(NUMBERS.prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
}

function check(name: string, result: number): void {
  if (result !== 0) throw new LibcError(name);
}

function sameGroups(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((group) => b.includes(group));
}
