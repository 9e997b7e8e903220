import type { GuardDeps, GuardedSandbox } from "./guarded-sandbox.ts";
import { MemoryGuard } from "./memory-guard.ts";
import { OpenFilesGuard } from "./open-files-guard.ts";

/** All guards of a running sandbox. They keep the sandbox within its limits, and alive. */
export class SandboxGuard {
  readonly #memory: MemoryGuard;
  readonly #files: OpenFilesGuard;

  constructor(deps: GuardDeps) {
    this.#memory = new MemoryGuard(deps);
    this.#files = new OpenFilesGuard(deps);
  }

  /** Preconditions: the sandbox and its agent run. A second call for a key starts anew. */
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

  /** Whether the kernel recently killed a process of the sandbox for its memory. This may be why the sandbox ended. */
  isOutOfMemory(key: string): boolean {
    return this.#memory.isOutOfMemory(key);
  }

  close(): void {
    this.#memory.close();
    this.#files.close();
  }
}
