// What an image, or the guest's root, wants done when the generation changes: programs, and signals to everybody. A signal needs no
// process, so a template can have its interpreters told without making every create pay for a program.

import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";

/** Those that end or stop nobody who does not handle them. */
const SIGNALS = ["SIGURG", "SIGWINCH", "SIGCHLD"] as const;
export type HookSignal = (typeof SIGNALS)[number];

const SIGNAL_SUFFIX = ".signal";
const MAX_SIGNAL_BYTES = 64;
const MAX_HOOKS = 100;
const OTHERS_MAY_WRITE = 0o022;

export interface Hooks {
  readonly signals: readonly HookSignal[];
  /** Paths, in the order of their names. */
  readonly programs: readonly string[];
  /** Why others are not among these. */
  readonly problems: readonly string[];
}

/** Root's alone: programs are run as root, so nobody else may have written them. */
export function findHooks(dir: string): Hooks {
  const found = { signals: [] as HookSignal[], programs: [] as string[], problems: [] as string[] };
  const about = statSync(dir, { throwIfNoEntry: false });
  if (!about?.isDirectory()) return found;
  if (!isRoots(about)) return { ...found, problems: [`${dir} does not belong to root alone`] };
  const names = readdirSync(dir).filter(isName).sort();
  if (names.length > MAX_HOOKS) found.problems.push(`there are ${names.length}, of which the first ${MAX_HOOKS} count`);
  for (const name of names.slice(0, MAX_HOOKS)) {
    const path = join(dir, name);
    const file = statSync(path, { throwIfNoEntry: false });
    if (!file?.isFile()) found.problems.push(`${path} is not a file`);
    else if (!isRoots(file)) found.problems.push(`${path} does not belong to root alone`);
    else if (name.endsWith(SIGNAL_SUFFIX)) addSignal(found, path, file);
    else if ((file.mode & 0o100) === 0) found.problems.push(`${path} is not executable`);
    else found.programs.push(path);
  }
  return found;
}

function addSignal({ signals, problems }: { signals: HookSignal[]; problems: string[] }, path: string, file: Stats): void {
  const text = file.size > MAX_SIGNAL_BYTES ? "" : readFileSync(path, "latin1").trim();
  const signal = SIGNALS.find((known) => known === text || known === `SIG${text}`);
  if (signal === undefined) problems.push(`${path} names none of ${SIGNALS.join(", ")}`);
  else if (!signals.includes(signal)) signals.push(signal);
}

/** Not what editors and package managers leave beside files. */
function isName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(name) && !/\.(?:bak|dpkg-\w+|swp|tmp)$/.test(name);
}

function isRoots({ uid, mode }: Stats): boolean {
  return uid === 0 && (mode & OTHERS_MAY_WRITE) === 0;
}
