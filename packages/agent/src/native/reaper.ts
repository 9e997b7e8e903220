import { decodeStatus, type ExitStatus } from "@skerry/base/posix-spawn";
import { isLibcLoaded, libc } from "./libc.ts";

const WNOHANG = 1;

/**
 * Collects the exits of all children. As process 1 the agent also inherits what guests leave behind, and every child that
 * it starts itself comes from `spawnProgram`: so each exit is taken, and those that nobody watches are only reaped.
 */
export class Reaper {
  readonly #watched = new Map<number, (status: ExitStatus) => void>();

  constructor() {
    process.on("SIGCHLD", () => this.poll());
  }

  watch(pid: number, onExit: (status: ExitStatus) => void): void {
    this.#watched.set(pid, onExit);
  }

  /** Also called before a process is looked up or started, so that an answer never rests on a signal still under way. */
  poll(): void {
    // Nothing can have been started before.
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
