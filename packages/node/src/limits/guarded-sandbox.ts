import type { RuntimeName } from "@skerry/runtime";

export interface GuardedSandbox {
  /** Any name that is unique among those watched. What else is known of a sandbox may change while it is. */
  readonly key: string;
  readonly runtime: RuntimeName;
  /** Host process whose end is the sandbox's end: on gVisor its kernel. */
  readonly pid: number;
  readonly cgroupPath: string;
  readonly address: string;
  /** It may be higher for a while. */
  limitBytes(): number;
  /** Asked each time, because a sandbox gets its name and token only when somebody claims it. */
  identity(): { readonly sandboxId: string; readonly accessToken: string };
  /** Nothing helps: the sandbox has to end. Called at most once. */
  onFatal(): void;
}
