import type { OciSpec } from "./spec/oci.ts";

/** What runs a sandbox's processes. Nothing above this interface knows which one it is. */
export interface Runtime {
  readonly name: RuntimeName;
  /** What this runtime can do beyond start and destroy; what it can't do is refused above with an error that names one which can. */
  readonly capabilities: RuntimeCapabilities;
  /** Changes whenever what this runtime makes of a plan changes: program, specification, processor. */
  readonly fingerprint: string;
  /**
   * Starts a prepared sandbox and answers when its first process runs.
   * Throws PlatformError("runtime_failed") with the runtime's own words; what was acquired until then is for `destroy`.
   */
  start(plan: ContainerPlan): Promise<StartedContainer>;
  /**
   * Brings back what `checkpoint` wrote, in another root file system, network namespace and group. The root must hold the
   * files that it held then. Throws PlatformError("image_unusable") when this image can't be brought back here.
   */
  restore(plan: ContainerPlan, image: MemoryImage): Promise<StartedContainer>;
  /** Stops every process of the sandbox where it is; `thaw` lets them go on. */
  freeze(target: ContainerRef): Promise<void>;
  thaw(target: ContainerRef): Promise<void>;
  /**
   * What it takes to save a frozen sandbox and to bring it back, beyond what it holds. `rootDir` is its root on the host.
   * Throws PlatformError("state_not_savable"), whose public message says why, where it can't be saved as it is.
   */
  survey(target: { readonly pid: number; readonly rootDir: string }): Promise<SavingNeeds>;
  /**
   * Writes processes and memory of a frozen sandbox into an empty directory. It stays frozen, also when this fails.
   * Throws PlatformError("runtime_failed"), and "state_not_savable" as `survey` does.
   */
  checkpoint(target: ContainerRef & { bundleDir: string }, imageDir: string): Promise<MemoryImage>;
  /** Has a running sandbox give memory back that the runtime itself has used for a while. That goes on after the answer. */
  reduceMemory(target: ContainerRef): Promise<void>;
  /** Ends every process of the sandbox and removes what the runtime and the kernel keep for it. Safe in any state, also for an id never seen. */
  destroy(target: ContainerRef & { cgroupPath: string }): Promise<void>;
  /**
   * Waits for what a former process of ours has asked this runtime for, and ends what takes too long. Preconditions: this process
   * has asked it for nothing yet.
   */
  endLeftCommands(): Promise<void>;
  /** Ids that this runtime's state folder holds anything of. */
  list(): Promise<string[]>;
  /** Removes what the runtime keeps for all its sandboxes together. Preconditions: none of them is left. */
  cleanUp(): Promise<void>;
}

export type RuntimeName = "gvisor" | "runc";

export interface RuntimeCapabilities {
  /** Processes and memory can be written to an image and brought back. */
  readonly checkpoint: boolean;
  /** The sandbox runs in a user namespace: `ContainerPlan.userNamespace` is needed, and `upper` is owned by its root. */
  readonly userNamespace: boolean;
}

export interface ContainerPlan {
  readonly id: string;
  /** Folder for `config.json` and the runtime's log; exists. */
  readonly bundleDir: string;
  /** The mounted root file system; no link on the way to it (runsc refuses one). */
  readonly rootDir: string;
  /** The agent's tree on the host, shown read-only at `/.skerry`. */
  readonly agentDir: string;
  readonly args: readonly string[];
  readonly hostname: string;
  readonly networkNamespacePath: string;
  readonly userNamespace?: UserNamespace;
  /** Absolute within the cgroup hierarchy, like `/skerry-1a2b/<id>`. */
  readonly cgroupPath: string;
  readonly limits: ContainerLimits;
}

export interface UserNamespace {
  readonly path: string;
  /** Host id of the namespace's root; ids 0 to 65,535 inside follow it. */
  readonly idBase: number;
}

export interface ContainerLimits {
  readonly cpuCount: number;
  /** What the guest is told that it has. */
  readonly memoryBytes: number;
  /** What runtime and agent may use on top: the limit that the host holds the whole sandbox to is the sum. */
  readonly overheadBytes: number;
  readonly pids: number;
}

export interface StartedContainer {
  /** Host pid whose end is the sandbox's end. */
  readonly pid: number;
  /** File name of the runtime's program that this sandbox runs on: what every later call has to use. */
  readonly binary: string;
}

export interface ContainerRef {
  readonly id: string;
  /** As `StartedContainer` said; without it, the current one. */
  readonly binary?: string;
}

/** In bytes. */
export interface SavingNeeds {
  /** On top of what the sandbox holds. */
  readonly memoryBytes: number;
  /** Free space on its own disk when it is brought back. */
  readonly diskBytes: number;
  /** What needs it, for callers; "" where nothing does. */
  readonly cause: string;
}

/** Processes and memory on disk, and what they need to come back. */
export interface MemoryImage {
  readonly dir: string;
  /** What bringing it back takes on top of what the sandbox will hold, in bytes. */
  readonly extraMemoryBytes?: number;
  /** File name of the program that wrote it: no other can read it. */
  readonly binary: string;
  /** Processor features that the guest may have found and uses. */
  readonly cpuFeatures: readonly string[];
  /** The specification that the sandbox ran with, without paths of the host: `restore` puts in its own. */
  readonly spec: OciSpec;
}
