// What /init sets and all other code reads. The token is the only secret here, and it never leaves the process.

import type { User } from "./accounts/accounts.ts";
import type { Trust } from "./certificates/trust.ts";
import type { Generation } from "./generation/generation.ts";
import { GuestGroups } from "./limits/guest-groups.ts";
import type { ProcessLimit } from "./limits/process-limit.ts";
import { UserLimit } from "./limits/user-limit.ts";
import { expandPath } from "./paths.ts";
import { OutputLog } from "./process/output-log.ts";
import type { SiteAccess } from "./site/site-access.ts";

export class AgentState {
  accessToken: string | undefined;
  defaultUser = "root";
  defaultWorkdir: string | undefined;
  /** Memory size of the sandbox; undefined until /init sets it. */
  memoryMB: number | undefined;
  /** Limit on the processes and threads of all guests together; undefined until /init sets it. */
  maxProcesses: number | undefined;
  /** Undefined until the platform sends the first certificate. */
  trust: Trust | undefined;
  /** Undefined where the operator's site needs neither proxies nor certificates. */
  site: SiteAccess | undefined;
  /** Set only in a sandbox. Elsewhere the files and processes do not belong to a guest. */
  generation: Generation | undefined;
  /** Newest accepted /init, in nanoseconds since the epoch; undefined before the first one with a timestamp. */
  newestInit: { readonly timestamp: bigint; readonly lifecycleId: string | undefined } | undefined;
  /** Variables of the platform. They override the guests' variables and those of /init. */
  readonly internalEnv = new Map<string, string>([["E2B_SANDBOX", "true"]]);
  userEnv: ReadonlyMap<string, string> = new Map();
  /** The agent's own PATH, for processes that get no other. */
  readonly path: string;
  #outputLog: OutputLog | undefined;
  #processLimit: ProcessLimit | undefined;
  #limitedTo: number | undefined;

  constructor(options: { path: string }) {
    this.path = options.path;
  }

  /** The variables of every new process, apart from those of its user: first those of /init, then the platform's. */
  environment(): Record<string, string> {
    return { ...Object.fromEntries(this.userEnv), ...Object.fromEntries(this.internalEnv) };
  }

  outputLog(): OutputLog {
    this.#outputLog ??= new OutputLog();
    return this.#outputLog;
  }

  /** The id of the sandbox; another one makes this a sandbox with a log of its own. */
  becomeSandbox(id: string): void {
    if (this.internalEnv.get("E2B_SANDBOX_ID") !== id) this.#outputLog?.reset();
    this.internalEnv.set("E2B_SANDBOX_ID", id);
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

  expand(path: string, user: User): string {
    return expandPath(path, { home: user.home, defaultWorkdir: this.defaultWorkdir });
  }
}
