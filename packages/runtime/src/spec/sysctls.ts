export interface ReasonedSysctl {
  readonly name: string;
  readonly value: string;
  readonly why: string;
}

/** Settings of the sandbox's own namespaces on runc. gVisor's kernel has suitable defaults. */
export const SYSCTLS: readonly ReasonedSysctl[] = [
  { name: "net.ipv4.ping_group_range", value: "0 65535", why: "ping works without CAP_NET_RAW" },
];
