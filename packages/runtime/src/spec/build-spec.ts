// From a plan to the OCI specification: pure, so that what a sandbox may do can be read and tested without starting one.

import type { ContainerPlan } from "../runtime.ts";
import { CAPABILITIES } from "./capabilities.ts";
import { MASKED_PATHS, READONLY_PATHS } from "./kernel-paths.ts";
import { baseMounts, OWN_KERNEL_MOUNTS, SHARED_KERNEL_MOUNTS } from "./mounts.ts";
import type { OciSpec } from "./oci.ts";
import { seccompFilter } from "./seccomp.ts";
import { SYSCTLS } from "./sysctls.ts";

const CPU_PERIOD_US = 100_000;
/** Of one processor: what the kernel gives a group that nobody configured. The runtimes turn it into a weight on version 2. */
const CPU_SHARES = 1024;
/**
 * In gVisor each file that the guest has open takes two of gVisor's own descriptors, of which the host gives it as many as a
 * process may have, and without any left it ends. So that no single process of the guest can get there.
 */
const GVISOR_FILES_SHARE = 8;
const ID_RANGE = 65_536;

export interface HostFacts {
  /** Node.js' name: "x64" or "arm64". */
  readonly arch: string;
  /** The hard limit of open files that the daemon itself has: raising it needs a capability that hosts differ in. */
  readonly maxOpenFiles: number;
  /** Whether this kernel can limit a group's swap; asking one that can't is an error there. */
  readonly limitsSwap: boolean;
  /** Folders in /sys that are masked for guests on the host's kernel. */
  readonly diskPaths: readonly string[];
}

export function buildSpec(plan: ContainerPlan, host: HostFacts): OciSpec {
  const capabilities = CAPABILITIES.map((capability) => capability.name);
  const openFiles = plan.userNamespace ? host.maxOpenFiles : Math.floor(host.maxOpenFiles / GVISOR_FILES_SHARE);
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: plan.args,
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      cwd: "/",
      // sudo must work inside.
      noNewPrivileges: false,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      rlimits: [{ type: "RLIMIT_NOFILE", soft: openFiles, hard: openFiles }],
    },
    root: { path: plan.rootDir, readonly: false },
    hostname: plan.hostname,
    mounts: [
      ...baseMounts({ agentDir: plan.agentDir, memoryBytes: plan.limits.memoryBytes }),
      ...(plan.userNamespace ? SHARED_KERNEL_MOUNTS : OWN_KERNEL_MOUNTS),
    ].map(({ why: _why, ...mount }) => mount),
    linux: {
      namespaces: [
        { type: "pid" },
        { type: "ipc" },
        { type: "uts" },
        { type: "mount" },
        { type: "network", path: plan.networkNamespacePath },
        { type: "cgroup" },
        ...(plan.userNamespace ? [{ type: "user", path: plan.userNamespace.path }] : []),
      ],
      cgroupsPath: plan.cgroupPath,
      resources: {
        memory: memoryLimit(plan.limits.memoryBytes + plan.limits.overheadBytes, host),
        cpu: { shares: plan.limits.cpuCount * CPU_SHARES, quota: plan.limits.cpuCount * CPU_PERIOD_US, period: CPU_PERIOD_US },
        pids: { limit: plan.limits.pids },
        ...(plan.userNamespace ? { devices: [{ allow: false, access: "rwm" }] } : {}),
      },
      ...(plan.userNamespace ? sharedKernelPart(plan.userNamespace.idBase, host) : {}),
    },
  };
}

/** No swap: it would be the host's disk and everybody's time. */
function memoryLimit(limit: number, host: HostFacts) {
  return host.limitsSwap ? { limit, swap: limit } : { limit };
}

/** What a sandbox on the host's own kernel needs on top. */
function sharedKernelPart(idBase: number, host: HostFacts) {
  const mappings = [{ containerID: 0, hostID: idBase, size: ID_RANGE }];
  return {
    uidMappings: mappings,
    gidMappings: mappings,
    sysctl: Object.fromEntries(SYSCTLS.map(({ name, value }) => [name, value])),
    maskedPaths: [...MASKED_PATHS.map(({ path }) => path), ...host.diskPaths],
    readonlyPaths: READONLY_PATHS.map(({ path }) => path),
    seccomp: seccompFilter(host.arch),
  };
}
