import type { Logger } from "@skerry/base";
import type { GuardedSandbox } from "./guarded-sandbox.ts";
import { MemoryGuard } from "./memory-guard.ts";
import { OpenFilesGuard } from "./open-files-guard.ts";

/** Everything that has to be looked after while a sandbox runs, so that it stays within its limits and alive. */
export class SandboxGuard {
  readonly #memory: MemoryGuard;
  readonly #files: OpenFilesGuard;

  constructor(logger: Logger) {
    this.#memory = new MemoryGuard(logger);
    this.#files = new OpenFilesGuard(logger);
  }

  /** Preconditions: it runs, and so does its agent. Watching a key again begins afresh. */
  watch(sandbox: GuardedSandbox): void {
    this.#memory.watch(sandbox);
    this.#files.watch(sandbox);
  }

  watches(key: string): boolean {
    return this.#memory.watches(key);
  }

  unwatch(key: string): void {
    this.#memory.unwatch(key);
    this.#files.unwatch(key);
  }

  /** Whether the kernel has ended something in this sandbox for its memory a moment ago: why it may have ended as a whole. */
  isOutOfMemory(key: string): boolean {
    return this.#memory.isOutOfMemory(key);
  }

  close(): void {
    this.#memory.close();
    this.#files.close();
  }
}
