// The process limit where the host's kernel counts. The sandbox's cgroup on the host includes the agent, so guests get a slightly
// lower limit: RLIMIT_NPROC. Processes inherit it, and it counts the processes of their user in this sandbox's user namespace.

import { libc } from "../native/libc.ts";
import { type ProcessLimit, SPARE_PROCESSES } from "./process-limit.ts";

const RLIMIT_NPROC = 6;
const NUMBERS = process.arch === "arm64" ? { getrlimit: 163, setrlimit: 164 } : { getrlimit: 97, setrlimit: 160 };

export class UserLimit implements ProcessLimit {
  /** The hard limit, which the guests' processes cannot exceed even if they raise their own limit. */
  readonly #hard: bigint;
  #soft: bigint;

  /** Preconditions: libc is loaded. */
  constructor() {
    const limits = new BigUint64Array(2);
    libc().syscallPointer(NUMBERS.getrlimit, RLIMIT_NPROC, new Uint8Array(limits.buffer));
    const [, hard = 0n] = limits;
    this.#hard = hard;
    this.#soft = hard;
  }

  setMost(most: number): void {
    const wanted = BigInt(Math.max(1, most - SPARE_PROCESSES));
    this.#soft = wanted < this.#hard ? wanted : this.#hard;
  }

  within<T>(start: () => T, isRefused: (error: unknown) => boolean): T {
    try {
      this.#set(this.#soft);
      return start();
    } catch (error) {
      if (!isRefused(error)) throw error;
      this.#set(this.#hard);
      return start();
    } finally {
      this.#set(this.#hard);
    }
  }

  #set(soft: bigint): void {
    const limits = BigUint64Array.of(soft, this.#hard);
    libc().syscallPointer(NUMBERS.setrlimit, RLIMIT_NPROC, new Uint8Array(limits.buffer));
  }
}
