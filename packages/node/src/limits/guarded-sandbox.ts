import type { Logger } from "@skerry/base";
import type { RuntimeName } from "@skerry/runtime";

export interface GuardDeps {
  readonly logger: Logger;
  /** Writes a line into the log of a sandbox, for its owner. The id is "" for a ready sandbox, which has none. */
  readonly tell: (sandboxId: string, text: string) => void;
}

export interface GuardedSandbox {
  /** A name that is unique among the guarded sandboxes, and stays the same. The other properties of a sandbox may change. */
  readonly key: string;
  readonly runtime: RuntimeName;
  /** The host process whose end is the end of the sandbox. On gVisor it is the kernel. */
  readonly pid: number;
  readonly cgroupPath: string;
  readonly address: string;
  /** The memory limit. It may be higher for a while. */
  limitBytes(): number;
  /** Read for each use: a ready sandbox gets its id and token when it is claimed. */
  identity(): { readonly sandboxId: string; readonly accessToken: string };
  /** Called when nothing helps and the sandbox must end. At most once. */
  onFatal(): void;
}
