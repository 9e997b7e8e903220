import type { OciMount } from "./oci.ts";

export interface ReasonedMount extends OciMount {
  readonly why: string;
}

/** Where the agent's tree appears in every sandbox. */
export const AGENT_MOUNT_POINT = "/.skerry";

export function baseMounts(options: { agentDir: string; memoryBytes: number }): readonly ReasonedMount[] {
  return [
    {
      destination: "/proc",
      type: "proc",
      source: "proc",
      options: ["nosuid", "noexec", "nodev"],
      why: "every program reads it",
    },
    {
      destination: "/dev",
      type: "tmpfs",
      source: "tmpfs",
      options: ["nosuid", "strictatime", "mode=755", "size=65536k"],
      why: "null, zero, random and friends, which the runtime makes; no host devices",
    },
    {
      destination: "/dev/pts",
      type: "devpts",
      source: "devpts",
      options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
      why: "terminals of this sandbox only",
    },
    {
      destination: "/dev/shm",
      type: "tmpfs",
      source: "shm",
      options: ["nosuid", "noexec", "nodev", "mode=1777", `size=${Math.floor(options.memoryBytes / 2048)}k`],
      why: "POSIX shared memory: browsers, PostgreSQL, Python's multiprocessing; in the sandbox's memory, of which files that no process holds must not take all",
    },
    {
      destination: "/sys",
      type: "sysfs",
      source: "sysfs",
      options: ["nosuid", "noexec", "nodev", "ro"],
      why: "programs look up processors and network interfaces; read-only",
    },
    {
      destination: AGENT_MOUNT_POINT,
      type: "bind",
      source: options.agentDir,
      options: ["bind", "ro", "nosuid", "nodev"],
      why: "the agent with its own Node.js and libraries, so that any image works; read-only and shared by all sandboxes",
    },
  ];
}

/** For sandboxes on a kernel of their own. */
export const OWN_KERNEL_MOUNTS: readonly ReasonedMount[] = [
  {
    destination: "/sys/fs/cgroup",
    type: "cgroup",
    source: "cgroup",
    options: ["nosuid", "noexec", "nodev"],
    why: "gVisor's own groups, not the host's: the agent keeps the guest's processes in one, so that a fork bomb ends in there",
  },
];

/** For sandboxes on the host's own kernel, where /proc/meminfo and /proc/stat speak of the whole machine. */
export const SHARED_KERNEL_MOUNTS: readonly ReasonedMount[] = [
  {
    destination: "/sys/fs/cgroup",
    type: "cgroup",
    source: "cgroup",
    options: ["nosuid", "noexec", "nodev", "ro"],
    why: "the sandbox's own use and limits, for the agent's metrics and for programs that size themselves; read-only, and of no other group",
  },
];
