// Hooks: what the image or the guest's root wants to happen when the generation changes. A hook is a program, or a signal to all
// processes. A signal needs no new process, so a template can notify its interpreters without slowing every create down.

import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";

/** Signals that neither end nor stop a process without a handler for them. */
const SIGNALS = ["SIGURG", "SIGWINCH", "SIGCHLD"] as const;
export type HookSignal = (typeof SIGNALS)[number];

const SIGNAL_SUFFIX = ".signal";
/** Limit on a .signal file, which holds the name of one signal. */
const MAX_SIGNAL_BYTES = 64;
/** Limit on the hooks of one sandbox: the agent reads each of them when the generation changes. */
const MAX_HOOKS = 100;
const OTHERS_MAY_WRITE = 0o022;

export interface Hooks {
  readonly signals: readonly HookSignal[];
  /** Paths, sorted by name. */
  readonly programs: readonly string[];
  /** Why other files in the folder are not used. */
  readonly problems: readonly string[];
}

/** Reads the hooks. The programs run as root, so a file that other users can write is not used. */
export function findHooks(dir: string): Hooks {
  const found = { signals: [] as HookSignal[], programs: [] as string[], problems: [] as string[] };
  const about = statSync(dir, { throwIfNoEntry: false });
  if (!about?.isDirectory()) return found;
  if (!isRoots(about)) return { ...found, problems: [`${dir} can be changed by others than root`] };
  const names = readdirSync(dir).filter(isName).sort();
  if (names.length > MAX_HOOKS) found.problems.push(`there are ${names.length} hooks, and only the first ${MAX_HOOKS} are used`);
  for (const name of names.slice(0, MAX_HOOKS)) {
    const path = join(dir, name);
    const file = statSync(path, { throwIfNoEntry: false });
    if (!file?.isFile()) found.problems.push(`${path} is not a file`);
    else if (!isRoots(file)) found.problems.push(`${path} can be changed by others than root`);
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

/** Excludes the files that editors and package managers leave beside others. */
function isName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(name) && !/\.(?:bak|dpkg-\w+|swp|tmp)$/.test(name);
}

function isRoots({ uid, mode }: Stats): boolean {
  return uid === 0 && (mode & OTHERS_MAY_WRITE) === 0;
}
