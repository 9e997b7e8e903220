// What /init sets and everything else reads. The token is the only secret here, and it never leaves the process.

import { findUser, type User } from "./accounts/accounts.ts";
import type { Trust } from "./certificates/trust.ts";
import type { Generation } from "./generation/generation.ts";
import { GuestGroups } from "./limits/guest-groups.ts";
import type { ProcessLimit } from "./limits/process-limit.ts";
import { UserLimit } from "./limits/user-limit.ts";
import { expandPath } from "./paths.ts";

export class AgentState {
  accessToken: string | undefined;
  defaultUser = "root";
  defaultWorkdir: string | undefined;
  /** Memory that the sandbox was made with; undefined until the platform said so. */
  memoryMB: number | undefined;
  /** How many processes and threads guests may have together; undefined until the platform said so. */
  maxProcesses: number | undefined;
  /** Made with the first certificate that the platform sends. */
  trust: Trust | undefined;
  /** Only in a sandbox: elsewhere the files and processes are somebody else's. */
  generation: Generation | undefined;
  /** Newest accepted /init, nanoseconds since the epoch; undefined before the first one that carried a time. */
  newestInit: { readonly timestamp: bigint; readonly lifecycleId: string | undefined } | undefined;
  /** Set by the platform; guests and /init variables cannot replace them. */
  readonly internalEnv = new Map<string, string>([["E2B_SANDBOX", "true"]]);
  userEnv: ReadonlyMap<string, string> = new Map();
  /** PATH of processes that get no other: the agent's own. */
  readonly path: string;
  #processLimit: ProcessLimit | undefined;
  #limitedTo: number | undefined;

  constructor(options: { path: string }) {
    this.path = options.path;
  }

  /** Everything a process gets beside its identity: /init variables, then the platform's. */
  environment(): Record<string, string> {
    return { ...Object.fromEntries(this.userEnv), ...Object.fromEntries(this.internalEnv) };
  }

  /** Preconditions: libc is loaded. */
  processLimit(): ProcessLimit {
    this.#processLimit ??= GuestGroups.make() ?? new UserLimit();
    if (this.maxProcesses !== undefined && this.maxProcesses !== this.#limitedTo) {
      this.#processLimit.setMost(this.maxProcesses);
      this.#limitedTo = this.maxProcesses;
    }
    return this.#processLimit;
  }

  user(name: string | undefined): User {
    return findUser(name ?? this.defaultUser);
  }

  expand(path: string, user: User): string {
    return expandPath(path, { home: user.home, defaultWorkdir: this.defaultWorkdir });
  }
}
