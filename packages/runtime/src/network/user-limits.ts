export interface ReasonedLimit {
  /** A file in /proc/sys/user. The limit applies to one user namespace and its descendants. */
  readonly name: string;
  readonly value: number;
  readonly why: string;
}

/**
 * Limits of resources that the kernel charges to the creator of a user namespace. That is the host's root for all sandboxes, so one
 * sandbox must not use up the resources of all.
 */
export const USER_LIMITS: readonly ReasonedLimit[] = [
  { name: "max_inotify_instances", value: 128, why: "the agent needs one to watch files; the host has them in common for all sandboxes" },
  { name: "max_inotify_watches", value: 65_536, why: "kernel memory that no control group counts on older kernels" },
];

/** inotify instances of the host for all sandboxes together. The default of many hosts is 128. */
export const HOST_INOTIFY_INSTANCES = 65_536;
