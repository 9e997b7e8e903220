// The generation of this sandbox: an id that the platform sets, and replaces when another sandbox may have the same memory or disk.
// A new generation tells programs that their state may exist elsewhere too. The model is Linux's VM generation id.
//
// Failure policy: an obstacle that the guest created is logged. It harms only the guest, and the sandbox starts.

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
  /** Sends the signal to every process of this sandbox but the agent. */
  readonly signalAll: (signal: HookSignal) => void;
  readonly runPrograms: (paths: readonly string[], generation: string) => Promise<void>;
  readonly log: Logger;
}

export class Generation {
  readonly #options: GenerationOptions;
  #current: string | undefined;
  /** What `prepare` found. Valid until the first generation is set, because nobody uses the sandbox before that. */
  #ahead: { readonly hooks: Hooks | undefined } | undefined;
  #running: Promise<void> | undefined;

  constructor(options: GenerationOptions) {
    this.#options = options;
  }

  /** Whether hook programs are running. */
  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Resolves when no hook programs are running. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running;
  }

  /** Does in advance what the first `become` needs, so that a sandbox in the pool has done it before a client claims it. */
  prepare(): void {
    const { file, hooksDir } = this.#options;
    if (this.#current !== undefined || this.#ahead) return;
    this.#current = this.#attempt("read the generation", () => readGeneration(file));
    this.#attempt("make the folder of the generation", () => mkdirSync(dirname(file), { recursive: true, mode: 0o755 }));
    this.#ahead = { hooks: this.#attempt("read the hooks", () => findHooks(hooksDir)) };
  }

  /**
   * Writes the file, sends the signals and starts the hook programs. Does nothing when `next` is already the generation, which the
   * agent knows from its memory after a restore, and from the file after a boot.
   *
   * In a sandbox that nobody has used, and without hook programs, nobody can observe when this happens. Then `become` only returns a
   * function that does all of it, and the caller may respond to the client first.
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
    // Removing the file works on a full disk, and no generation is better than a wrong one.
    if (!isWritten) this.#attempt("remove the former generation", () => rmSync(file, { force: true }));
    const { hooks } = ahead ?? { hooks: this.#attempt("read the hooks", () => findHooks(hooksDir)) };
    if (!hooks) return;
    for (const problem of hooks.problems) this.#options.log(`a hook was skipped: ${problem}`);
    for (const signal of hooks.signals) this.#attempt(`send ${signal}`, () => signalAll(signal));
    if (hooks.programs.length > 0) this.#run(() => runPrograms(hooks.programs, next));
  }

  /** Runs one batch after the other. A sandbox can be copied while its hooks run, and then the copy gets a generation of its own. */
  #run(work: () => Promise<void>): void {
    const before = this.#running ?? Promise.resolve();
    const run = before
      .then(work)
      .catch((error: unknown) => this.#options.log("the agent could not run the hooks", error))
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

/** Renames a new file into place. No program reads a partial file, and programs that watch the folder or the inode see a change. */
function writeGeneration(file: string, generation: string): true {
  const next = `${file}.next`;
  // "wx" fails if the file exists, so it follows no link.
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
