import type { VolumePlan } from "../runtime.ts";
import type { OciMount } from "./oci.ts";

export interface ReasonedMount extends OciMount {
  readonly why: string;
}

/** Mount point of the agent's tree in every sandbox. */
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
      why: "POSIX shared memory: browsers, PostgreSQL, Python's multiprocessing; limited to half of the sandbox's memory",
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

/** Options of a volume: other sandboxes write to it too, so nothing in it may give anybody more rights. */
export const VOLUME_OPTIONS = ["bind", "rw", "nosuid", "nodev"] as const;

/** gVisor would keep files open that nobody uses any more. The space of a file that another sandbox has deleted would not be free then. */
const NO_CACHED_ENTRIES = "dcache=0";

export function volumeMounts(volumes: readonly VolumePlan[], { ownKernel }: { ownKernel: boolean }): readonly ReasonedMount[] {
  return volumes.map(({ path, dir }) => ({
    destination: path,
    type: "bind",
    source: dir,
    options: ownKernel ? [...VOLUME_OPTIONS, NO_CACHED_ENTRIES] : VOLUME_OPTIONS,
    why: "a volume that the caller named; shared with other sandboxes",
  }));
}

/** For sandboxes with their own kernel (gVisor). */
export const OWN_KERNEL_MOUNTS: readonly ReasonedMount[] = [
  {
    destination: "/sys/fs/cgroup",
    type: "cgroup",
    source: "cgroup",
    options: ["nosuid", "noexec", "nodev"],
    why: "gVisor's own cgroups, not the host's; the agent limits the guest's processes with one of them, against fork bombs",
  },
];

/** For sandboxes on the host's kernel (runc), where /proc/meminfo and /proc/stat describe the whole host. */
export const SHARED_KERNEL_MOUNTS: readonly ReasonedMount[] = [
  {
    destination: "/sys/fs/cgroup",
    type: "cgroup",
    source: "cgroup",
    options: ["nosuid", "noexec", "nodev", "ro"],
    why: "use and limits of the sandbox, for the agent's metrics and for programs that adapt to them; read-only, and no other cgroup",
  },
];
