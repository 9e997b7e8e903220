// Builds the OCI specification of a plan, as a pure function, so that the isolation of a sandbox can be tested without a start.

import type { ContainerPlan } from "../runtime.ts";
import { CAPABILITIES } from "./capabilities.ts";
import { MASKED_PATHS, READONLY_PATHS } from "./kernel-paths.ts";
import { baseMounts, OWN_KERNEL_MOUNTS, SHARED_KERNEL_MOUNTS, volumeMounts } from "./mounts.ts";
import type { OciSpec } from "./oci.ts";
import { seccompFilter } from "./seccomp.ts";
import { sharedMountHints } from "./shared-mounts.ts";
import { SYSCTLS } from "./sysctls.ts";

const CPU_PERIOD_US = 100_000;
/** Shares of one CPU: the kernel's default for a cgroup. On version 2 the runtimes convert shares to a weight. */
const CPU_SHARES = 1024;
/**
 * Share of gVisor's descriptors that one guest process may use. Each file that the guest opens takes two descriptors of gVisor's
 * kernel, and that kernel ends when it reaches its limit.
 */
const GVISOR_FILES_SHARE = 8;
const ID_RANGE = 65_536;

export interface HostFacts {
  /** As Node.js names it: "x64" or "arm64". */
  readonly arch: string;
  /** The hard limit of open files of the daemon. Some hosts do not let root raise it. */
  readonly maxOpenFiles: number;
  /** Whether the kernel can limit the swap of a cgroup. A limit is an error on other kernels. */
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
      // Otherwise sudo does not work.
      noNewPrivileges: false,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      rlimits: [{ type: "RLIMIT_NOFILE", soft: openFiles, hard: openFiles }],
    },
    root: { path: plan.rootDir, readonly: false },
    hostname: plan.hostname,
    mounts: [
      ...baseMounts({ agentDir: plan.agentDir, memoryBytes: plan.limits.memoryBytes }),
      ...(plan.userNamespace ? SHARED_KERNEL_MOUNTS : OWN_KERNEL_MOUNTS),
      ...volumeMounts(plan.volumes ?? [], { ownKernel: !plan.userNamespace }),
    ].map(({ why: _why, ...mount }) => mount),
    ...(plan.volumes && !plan.userNamespace ? { annotations: sharedMountHints(plan.volumes) } : {}),
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

/** No swap: a sandbox that swaps would slow down the disk of the host. */
function memoryLimit(limit: number, host: HostFacts) {
  return host.limitsSwap ? { limit, swap: limit } : { limit };
}

/** The additional isolation of a sandbox on the host's kernel. */
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
