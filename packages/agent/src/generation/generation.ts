// Which copy of its past this sandbox is. The platform names a generation, and names another one when the sandbox's memory or disk
// is no longer its alone: programs learn from that that what they hold is also held elsewhere. As Linux's VM generation id.
//
// Failure policy: whatever the guest has put in the way of this is logged and costs nobody but the guest; the sandbox starts.

import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { errnoOf } from "@skerry/base";
import type { Logger } from "../log.ts";
import { findHooks, type HookSignal, type Hooks } from "./hooks.ts";

export const GENERATION_FILE = "/run/skerry/generation";
export const GENERATION_HOOKS = "/etc/skerry/generation.d";

/** 128 bits. */
const PATTERN = /^[0-9a-f]{32}$/;

export const isGeneration = (text: string): boolean => PATTERN.test(text);

export interface GenerationOptions {
  readonly file: string;
  readonly hooksDir: string;
  /** To every process of this sandbox but the agent. */
  readonly signalAll: (signal: HookSignal) => void;
  readonly runPrograms: (paths: readonly string[], generation: string) => Promise<void>;
  readonly log: Logger;
}

export class Generation {
  readonly #options: GenerationOptions;
  #current: string | undefined;
  /** What was found ahead, until the first generation is named: nobody has used this sandbox before. */
  #ahead: { readonly hooks: Hooks | undefined } | undefined;
  #running: Promise<void> | undefined;

  constructor(options: GenerationOptions) {
    this.#options = options;
  }

  /** Whether programs of a hook run. */
  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Resolves when no programs of a hook run. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running;
  }

  /** Does ahead what the first `become` needs, so that a sandbox that waits in the pool has done that before somebody claims it. */
  prepare(): void {
    const { file, hooksDir } = this.#options;
    if (this.#current !== undefined || this.#ahead) return;
    this.#current = this.#attempt("read the generation", () => readGeneration(file));
    this.#attempt("make the folder of the generation", () => mkdirSync(dirname(file), { recursive: true, mode: 0o755 }));
    this.#ahead = { hooks: this.#attempt("read the hooks", () => findHooks(hooksDir)) };
  }

  /**
   * Writes the file, sends signals, and begins to run programs. Nothing happens when that is the generation already: in the agent's memory after
   * a restore, in the file after a boot. Where nobody can see it before the caller has called what comes back, that does all of it:
   * a sandbox that nobody has used need not keep its creator waiting.
   */
  become(next: string): (() => void) | undefined {
    this.prepare();
    const ahead = this.#ahead;
    this.#ahead = undefined;
    if (next === this.#current) return undefined;
    const isFirst = this.#current === undefined;
    this.#current = next;
    if (isFirst && ahead?.hooks?.programs.length === 0) return () => this.#announce(next, ahead);
    this.#announce(next, ahead);
    return undefined;
  }

  #announce(next: string, ahead: { readonly hooks: Hooks | undefined } | undefined): void {
    const { file, hooksDir, signalAll, runPrograms } = this.#options;
    const isWritten = this.#attempt("write the generation", () => writeGeneration(file, next));
    // On a full disk there is still room for that, and no generation is better than a wrong one.
    if (!isWritten) this.#attempt("remove the former generation", () => rmSync(file, { force: true }));
    const { hooks } = ahead ?? { hooks: this.#attempt("read the hooks", () => findHooks(hooksDir)) };
    if (!hooks) return;
    for (const problem of hooks.problems) this.#options.log(`a hook is left out: ${problem}`);
    for (const signal of hooks.signals) this.#attempt(`send ${signal}`, () => signalAll(signal));
    if (hooks.programs.length > 0) this.#run(() => runPrograms(hooks.programs, next));
  }

  /** One after the other: a sandbox can be copied while its hooks run, and the copy has a generation of its own then. */
  #run(work: () => Promise<void>): void {
    const before = this.#running ?? Promise.resolve();
    const run = before
      .then(work)
      .catch((error: unknown) => this.#options.log("hooks could not be run", error))
      .finally(() => {
        if (this.#running === run) this.#running = undefined;
      });
    this.#running = run;
  }

  #attempt<T>(what: string, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#options.log(`could not ${what}`, error);
      return undefined;
    }
  }
}

function readGeneration(file: string): string | undefined {
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const text = readFileSync(file, "latin1").trim();
  return isGeneration(text) ? text : undefined;
}

/** By a rename: nobody reads half of it, and who watches the folder or the file's inode sees a change. */
function writeGeneration(file: string, generation: string): true {
  const next = `${file}.next`;
  // "wx" makes a new file or none: it follows no link.
  const write = () => writeFileSync(next, `${generation}\n`, { flag: "wx", mode: 0o644 });
  try {
    write();
  } catch (error) {
    if (errnoOf(error) === "EEXIST") rmSync(next, { recursive: true, force: true });
    else if (errnoOf(error) === "ENOENT") mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
    else throw error;
    write();
  }
  renameSync(next, file);
  return true;
}
