export interface ReasonedPath {
  readonly path: string;
  readonly why: string;
}

/** Paths that are hidden from guests on the host's kernel (runc). On gVisor these paths show gVisor's kernel. */
export const MASKED_PATHS: readonly ReasonedPath[] = [
  { path: "/proc/acpi", why: "firmware of the host" },
  { path: "/proc/asound", why: "devices of the host" },
  { path: "/proc/cmdline", why: "settings of the host's kernel, and the id of its disk" },
  { path: "/proc/diskstats", why: "disk activity of all other sandboxes" },
  { path: "/proc/fs", why: "file systems of the host, by device" },
  { path: "/proc/interrupts", why: "timing side channel to the host" },
  { path: "/proc/kcore", why: "memory of the host" },
  { path: "/proc/keys", why: "keyrings are not separated by namespace" },
  { path: "/proc/latency_stats", why: "timing side channel to the host" },
  { path: "/proc/mdstat", why: "devices of the host" },
  { path: "/proc/partitions", why: "the disks of all other sandboxes" },
  { path: "/proc/sched_debug", why: "shows processes of the host" },
  { path: "/proc/scsi", why: "devices of the host" },
  { path: "/proc/swaps", why: "devices of the host" },
  { path: "/proc/sys/kernel/random/boot_id", why: "identifies the host; the boot id of the sandbox is mounted over the mask" },
  { path: "/proc/timer_list", why: "shows processes of the host" },
  { path: "/proc/timer_stats", why: "shows processes of the host" },
  { path: "/sys/block", why: "the disks of all other sandboxes, with their paths on the host" },
  { path: "/sys/class/block", why: "the disks of all other sandboxes" },
  { path: "/sys/class/dmi", why: "make and serial numbers of the host" },
  { path: "/sys/dev/block", why: "the disks of all other sandboxes" },
  { path: "/sys/devices/virtual/bdi", why: "writes of all other sandboxes" },
  { path: "/sys/devices/virtual/block", why: "the disks of all other sandboxes, with their paths on the host" },
  { path: "/sys/devices/virtual/dmi", why: "make and serial numbers of the host" },
  { path: "/sys/devices/virtual/powercap", why: "power side channel" },
  { path: "/sys/firmware", why: "firmware of the host" },
  { path: "/sys/fs/btrfs", why: "file systems of the host, by device" },
  { path: "/sys/fs/ext4", why: "counters of every other sandbox's disk" },
  { path: "/sys/fs/xfs", why: "file systems of the host, by device" },
  { path: "/sys/hypervisor", why: "the host's id as a virtual machine" },
  { path: "/sys/kernel/debug", why: "kernel internals" },
  { path: "/sys/kernel/security", why: "security modules of the host" },
];

export const READONLY_PATHS: readonly ReasonedPath[] = [
  { path: "/proc/bus", why: "devices of the host" },
  { path: "/proc/irq", why: "interrupts of the host" },
  { path: "/proc/sys", why: "settings of the host's kernel" },
  { path: "/proc/sysrq-trigger", why: "reboots the host" },
  { path: "/sys/fs/cgroup", why: "on version 1, a writable folder around the read-only cgroups" },
];
