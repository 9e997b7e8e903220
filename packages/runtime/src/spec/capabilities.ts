export interface ReasonedCapability {
  readonly name: string;
  readonly why: string;
}

/**
 * The capabilities of root inside a sandbox. Both runtimes get the same set, so that a template behaves the same on both.
 * On runc they apply only inside the sandbox's own user namespace.
 */
export const CAPABILITIES: readonly ReasonedCapability[] = [
  { name: "CAP_CHOWN", why: "the agent gives uploaded files to their user; package managers set owners" },
  { name: "CAP_DAC_OVERRIDE", why: "root inside reads and writes files of every user, as on any machine" },
  { name: "CAP_FOWNER", why: "chmod and utimes on files of other users: tar, dpkg, pip as root" },
  { name: "CAP_FSETID", why: "keep set-id bits when root edits a file: dpkg" },
  { name: "CAP_KILL", why: "the agent signals processes of every user" },
  { name: "CAP_SETGID", why: "the agent starts commands as a user and its groups; sudo, su" },
  { name: "CAP_SETUID", why: "the agent starts commands as a user; sudo, su" },
  { name: "CAP_SETPCAP", why: "programs that drop their own bounding set: sshd, apt's sandbox" },
  { name: "CAP_SETFCAP", why: "packages with file capabilities install" },
  { name: "CAP_NET_BIND_SERVICE", why: "root inside binds ports below 1024 of its own network namespace" },
  { name: "CAP_SYS_CHROOT", why: "apt, debootstrap and sshd change root" },
  { name: "CAP_SYS_NICE", why: "the agent sets the niceness of what it starts" },
];
