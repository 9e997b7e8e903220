export interface ReasonedLimit {
  /** A file of /proc/sys/user, which counts for one user namespace and those below it. */
  readonly name: string;
  readonly value: number;
  readonly why: string;
}

/** What the kernel charges to whoever made a user namespace, which is the host's root for all of them: one must not use up everybody's. */
export const USER_LIMITS: readonly ReasonedLimit[] = [
  { name: "max_inotify_instances", value: 128, why: "the agent needs one to watch files; the host has them in common for all sandboxes" },
  { name: "max_inotify_watches", value: 65_536, why: "kernel memory that no control group counts on older kernels" },
];

/** Instances that the host has for all sandboxes together; many hosts come with 128. */
export const HOST_INOTIFY_INSTANCES = 65_536;
