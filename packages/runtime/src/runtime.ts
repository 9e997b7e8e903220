import type { OciSpec } from "./spec/oci.ts";

/** Runs the processes of sandboxes. Code above this interface does not know which runtime it is. */
export interface Runtime {
  readonly name: RuntimeName;
  /** Optional features. The node refuses other operations with an error that names a runtime which has the feature. */
  readonly capabilities: RuntimeCapabilities;
  /** Changes when the program, the specification or the CPU changes. Images with another fingerprint may be unusable. */
  readonly fingerprint: string;
  /**
   * Starts a prepared sandbox, and returns when its first process runs.
   * Throws PlatformError("runtime_failed") with the message of the runtime. `destroy` then removes what exists.
   */
  start(plan: ContainerPlan): Promise<StartedContainer>;
  /**
   * Restores a checkpoint in another root file system, network namespace and cgroup. The root must contain the same files as at the
   * checkpoint. Throws PlatformError("image_unusable") when the image cannot be restored on this host.
   */
  restore(plan: ContainerPlan, image: MemoryImage): Promise<StartedContainer>;
  /** Stops all processes of the sandbox where they are, until `thaw`. */
  freeze(target: ContainerRef): Promise<void>;
  thaw(target: ContainerRef): Promise<void>;
  /**
   * The additional memory and disk space for a checkpoint and a restore of a frozen sandbox.
   * Throws PlatformError("state_not_savable"), with a public message, when the sandbox cannot be saved in its current state.
   */
  survey(target: SurveyTarget): Promise<SavingNeeds>;
  /**
   * Writes the processes and memory of a frozen sandbox to an empty directory. The sandbox stays frozen, also after a failure.
   * Throws PlatformError("runtime_failed"), or "state_not_savable" like `survey`.
   */
  checkpoint(target: ContainerRef & { bundleDir: string }, imageDir: string): Promise<MemoryImage>;
  /** Asks the runtime of a running sandbox to return unused memory of its own to the host, which continues after this call. */
  reduceMemory(target: ContainerRef): Promise<void>;
  /** Kills all processes of the sandbox, and removes its state and its cgroup. Safe in any state, also for an unknown id. */
  destroy(target: ContainerRef & { cgroupPath: string }): Promise<void>;
  /**
   * Waits for runtime commands of an earlier daemon, and kills those that take too long. Preconditions: this process has not used the
   * runtime yet.
   */
  endLeftCommands(): Promise<void>;
  /** Ids of all sandboxes in the state folder of this runtime. */
  list(): Promise<string[]>;
  /** Removes the state folder. Preconditions: no sandbox is left. */
  cleanUp(): Promise<void>;
}

export interface SurveyTarget {
  readonly pid: number;
  /** The root of the sandbox on the host. */
  readonly rootDir: string;
  readonly volumes: readonly VolumePlan[];
}

export type RuntimeName = "gvisor" | "runc";

export interface RuntimeCapabilities {
  /** The runtime can save processes and memory to an image, and restore them. */
  readonly checkpoint: boolean;
  /** Sandboxes run in a user namespace. `ContainerPlan.userNamespace` is required, and its root must own `upper`. */
  readonly userNamespace: boolean;
}

export interface ContainerPlan {
  readonly id: string;
  /** Existing folder for `config.json` and the log of the runtime. It must exist as long as the sandbox. */
  readonly bundleDir: string;
  /** The mounted root file system. Its path must not contain symbolic links, which runsc refuses. */
  readonly rootDir: string;
  /** The agent's tree on the host, which is mounted read-only at `/.skerry`. */
  readonly agentDir: string;
  readonly args: readonly string[];
  readonly hostname: string;
  readonly networkNamespacePath: string;
  readonly userNamespace?: UserNamespace;
  /** Absolute path within the cgroup hierarchy, such as `/skerry-1a2b/<id>`. */
  readonly cgroupPath: string;
  readonly limits: ContainerLimits;
  /** Directories that it shares with other sandboxes. */
  readonly volumes?: readonly VolumePlan[];
}

export interface VolumePlan {
  /** In the sandbox: absolute, and no other one is below it. Created if it is missing. */
  readonly path: string;
  /** On the host, without symbolic links. Others may change its files at any time. */
  readonly dir: string;
}

export interface UserNamespace {
  readonly path: string;
  /** Host id of root in the namespace. Ids 0 to 65,535 are mapped from there on. */
  readonly idBase: number;
}

export interface ContainerLimits {
  readonly cpuCount: number;
  /** The size of its memory that the guest sees. */
  readonly memoryBytes: number;
  /** Additional memory for the runtime and the agent. The host limits the whole sandbox to the sum. */
  readonly overheadBytes: number;
  readonly pids: number;
}

export interface StartedContainer {
  /** Pid on the host of the process whose end is the end of the sandbox. */
  readonly pid: number;
  /** File name of the runtime program of this sandbox. Every later call must use the same program. */
  readonly binary: string;
}

export interface ContainerRef {
  readonly id: string;
  /** From `StartedContainer`. Default: the current program. */
  readonly binary?: string;
}

/** Additional needs of saving a sandbox, in bytes. */
export interface SavingNeeds {
  /** Memory beyond the current use of the sandbox. */
  readonly memoryBytes: number;
  /** Free space on its own disk during the restore. */
  readonly diskBytes: number;
  /** The cause, for callers; "" when there are no additional needs. */
  readonly cause: string;
}

/** Saved processes and memory, and the requirements of their restore. */
export interface MemoryImage {
  readonly dir: string;
  /** Memory that the restore needs beyond the memory of the sandbox, in bytes. */
  readonly extraMemoryBytes?: number;
  /** File name of the program that wrote the image. No other program can read it. */
  readonly binary: string;
  /** CPU features that programs of the guest may use. */
  readonly cpuFeatures: readonly string[];
  /** The specification that the sandbox ran with, without paths of the host: `restore` puts in its own. */
  readonly spec: OciSpec;
}
