import { describe, expect, it } from "vitest";
import type { ContainerPlan } from "../runtime.ts";
import { buildSpec } from "./build-spec.ts";
import { CAPABILITIES } from "./capabilities.ts";
import { MASKED_PATHS, READONLY_PATHS } from "./kernel-paths.ts";
import { baseMounts, OWN_KERNEL_MOUNTS, SHARED_KERNEL_MOUNTS } from "./mounts.ts";
import { SYSCALL_GROUPS, seccompFilter } from "./seccomp.ts";
import { SYSCTLS } from "./sysctls.ts";

const plan: ContainerPlan = {
  id: "iabc",
  bundleDir: "/b",
  rootDir: "/b/root",
  agentDir: "/agent",
  args: ["/.skerry/bin/tini"],
  hostname: "iabc",
  networkNamespacePath: "/run/netns/x",
  cgroupPath: "/skerry-1a2b/iabc",
  limits: { cpuCount: 2, memoryBytes: 1 << 29, overheadBytes: 1 << 27, pids: 100 },
};
const host = { arch: "x64", maxOpenFiles: 1000, limitsSwap: true, diskPaths: [] };

describe("OCI specification", () => {
  it("gives a reason beside each capability, mount, path, sysctl and group of system calls", () => {
    const reasons = [
      ...CAPABILITIES,
      ...baseMounts({ agentDir: "/agent", memoryBytes: 1 << 29 }),
      ...SHARED_KERNEL_MOUNTS,
      ...OWN_KERNEL_MOUNTS,
      ...MASKED_PATHS,
      ...READONLY_PATHS,
      ...SYSCTLS,
      ...SYSCALL_GROUPS,
    ].map(({ why }) => why);
    expect(reasons.length).toBeGreaterThan(40);
    for (const why of reasons) expect(why.length).toBeGreaterThan(8);
  });

  it("grants none of the capabilities that reach the host", () => {
    const dangerous = [
      "SYS_ADMIN",
      "SYS_MODULE",
      "SYS_RAWIO",
      "SYS_PTRACE",
      "SYS_BOOT",
      "SYS_TIME",
      "NET_ADMIN",
      "NET_RAW",
      "MKNOD",
      "BPF",
      "PERFMON",
      "DAC_READ_SEARCH",
      "MAC_ADMIN",
      "SYSLOG",
    ];
    const granted = buildSpec(plan, host).process.capabilities.bounding;
    for (const name of dangerous) expect(granted).not.toContain(`CAP_${name}`);
  });

  it("leaves no ambient or inheritable capabilities to the programs of unprivileged users", () => {
    expect(Object.keys(buildSpec(plan, host).process.capabilities).sort()).toEqual(["bounding", "effective", "permitted"]);
  });

  it("puts a sandbox on the host's kernel behind a user namespace, a filter and masked paths", () => {
    const spec = buildSpec({ ...plan, userNamespace: { path: "/u", idBase: 1_000_000 } }, host);
    expect(spec.linux.namespaces).toContainEqual({ type: "user", path: "/u" });
    expect(spec.linux.uidMappings).toEqual([{ containerID: 0, hostID: 1_000_000, size: 65_536 }]);
    expect(spec.linux.seccomp?.defaultAction).toBe("SCMP_ACT_ERRNO");
    expect(spec.linux.maskedPaths).toContain("/proc/kcore");
    expect(spec.linux.resources.devices).toEqual([{ allow: false, access: "rwm" }]);
  });

  it("allows no system call twice, and none that escapes have used", () => {
    const allowed = seccompFilter("x64")
      .syscalls.filter((rule) => rule.action === "SCMP_ACT_ALLOW" && !rule.args)
      .flatMap((rule) => rule.names);
    expect(new Set(allowed).size).toBe(allowed.length);
    for (const name of [
      "unshare",
      "setns",
      "mount",
      "umount2",
      "pivot_root",
      "open_tree",
      "move_mount",
      "fsopen",
      "mount_setattr",
      "bpf",
      "perf_event_open",
      "io_uring_setup",
      "userfaultfd",
      "keyctl",
      "add_key",
      "request_key",
      "init_module",
      "finit_module",
      "kexec_load",
      "reboot",
      "swapon",
      "open_by_handle_at",
      "clone3",
      "clone",
      "socket",
    ]) {
      expect(allowed).not.toContain(name);
    }
  });

  it("limits CPUs per sandbox, and files so that no guest process uses up the descriptors of gVisor", () => {
    const own = buildSpec(plan, host);
    const shared = buildSpec({ ...plan, userNamespace: { path: "/u", idBase: 1_000_000 } }, host);
    expect(own.linux.resources.cpu).toEqual({ shares: 2048, quota: 200_000, period: 100_000 });
    expect(own.process.rlimits).toEqual([{ type: "RLIMIT_NOFILE", soft: 125, hard: 125 }]);
    expect(shared.process.rlimits).toEqual([{ type: "RLIMIT_NOFILE", soft: 1000, hard: 1000 }]);
  });

  it("shares nothing of the host but the agent's read-only tree", () => {
    const binds = buildSpec(plan, host).mounts.filter((mount) => mount.type === "bind");
    expect(binds).toEqual([{ destination: "/.skerry", type: "bind", source: "/agent", options: ["bind", "ro", "nosuid", "nodev"] }]);
  });
});
