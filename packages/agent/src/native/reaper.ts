import { decodeStatus, type ExitStatus } from "@skerry/base/posix-spawn";
import { isLibcLoaded, libc } from "./libc.ts";

const WNOHANG = 1;

/**
 * Collects the exit status of every child. As process 1 the agent also inherits orphaned guest processes, and it starts all its own
 * children with `spawnProgram`. So the reaper waits for any child, and discards the exit status of those that nobody watches.
 */
export class Reaper {
  readonly #watched = new Map<number, (status: ExitStatus) => void>();

  constructor() {
    process.on("SIGCHLD", () => this.poll());
  }

  watch(pid: number, onExit: (status: ExitStatus) => void): void {
    this.#watched.set(pid, onExit);
  }

  /** Also called before the agent looks up or starts a process, so that no response depends on a SIGCHLD that is still pending. */
  poll(): void {
    // Before libc is loaded no process can have been started.
    if (!isLibcLoaded()) return;
    const status = new Int32Array(1);
    for (;;) {
      const pid = libc().waitpid(-1, new Uint8Array(status.buffer), WNOHANG);
      if (pid <= 0) return;
      const onExit = this.#watched.get(pid);
      this.#watched.delete(pid);
      onExit?.(decodeStatus(status[0] ?? 0));
    }
  }
}
