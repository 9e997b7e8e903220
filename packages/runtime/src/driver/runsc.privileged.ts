import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { unmount } from "@skerry/base/linux";
import { deletedFilesOf } from "../deleted-files.privileged.ts";
import type { Runtime } from "../runtime.ts";
import type { HostFacts } from "../spec/build-spec.ts";
import { endLeftCommands } from "./left-commands.privileged.ts";
import {
  bringUp,
  control,
  destroyContainer,
  fingerprintOf,
  type OciDriver,
  TIME_LIMITS,
  type TimeLimits,
} from "./oci-driver.privileged.ts";
import { reduceMemory } from "./runsc-control.privileged.ts";
import { checkpointContainer, restoreContainer, runscSpec } from "./runsc-image.privileged.ts";
import { savingNeeds } from "./saving-needs.ts";

/** gVisor: a kernel in user space between guest and host. Creates `stateDir`, whose path must be short because it contains sockets. */
export function createRunscRuntime(options: {
  binary: string;
  stateDir: string;
  host: HostFacts;
  timeLimits?: Partial<TimeLimits>;
}): Runtime {
  mkdirSync(options.stateDir, { recursive: true, mode: 0o700 });
  const driver: OciDriver = {
    binary: options.binary,
    host: options.host,
    timeLimits: { ...TIME_LIMITS, ...options.timeLimits },
    globalArgs: [
      `--root=${options.stateDir}`,
      // This platform of gVisor needs neither KVM nor ptrace.
      "--platform=systrap",
      // Packets of the guest pass gVisor's own network stack and never use sockets of the host.
      "--network=sandbox",
      // The root file system is already an overlay of the host. Files stay on disk, and checkpoints hold memory only.
      "--overlay2=none",
      // Only the sandbox changes its files while it runs, and the agent's tree never changes. So gVisor need not revalidate lookups with
      // its file server, which makes the agent start a third faster.
      "--file-access-mounts=exclusive",
      // Set-user-id programs such as sudo need it.
      "--allow-suid",
      // Connections survive when a sandbox continues from its own image. In a clone, which has another address, they end at once.
      "--allow-connected-on-save",
      // cgroups inside the sandbox, with which the agent limits processes. Version 1 miscounts when many processes start at once.
      "--in-sandbox-cgroup=v2",
    ],
  };
  return {
    fingerprint: fingerprintOf(driver),
    name: "gvisor",
    capabilities: { checkpoint: true, userNamespace: false },
    start: (plan) => bringUp(driver, plan, { args: ["run"], binary: driver.binary, spec: runscSpec(plan, driver.host) }),
    restore: (plan, image) => restoreContainer(driver, plan, image),
    survey: async (target) => savingNeeds(await deletedFilesOf(target)),
    reduceMemory: ({ id }) => reduceMemory(options.stateDir, id),
    freeze: (target) => control(driver, target, ["pause"]),
    thaw: (target) => control(driver, target, ["resume"]),
    checkpoint: (target, imageDir) => checkpointContainer(driver, target, imageDir),
    async destroy(target) {
      await destroyContainer(driver, target);
      // A command that was killed before it wrote the state file leaves its lock and its socket, of which `delete` knows nothing.
      for (const name of [`${target.id}_sandbox:${target.id}.lock`, `runsc-${target.id}.sock`])
        rmSync(join(options.stateDir, name), { force: true });
    },
    endLeftCommands: () => endLeftCommands(options.stateDir),
    // State files are named `<id>_sandbox:<id>.state` and `.lock`, and the control socket `runsc-<id>.sock`.
    list: async () => [
      ...new Set(
        readdirSync(options.stateDir)
          .map((name) => /^(?:([a-z0-9]+)_sandbox:|runsc-([a-z0-9]+)\.sock$)/.exec(name))
          .map((match) => match?.[1] ?? match?.[2])
          .filter((id) => id !== undefined),
      ),
    ],
    async cleanUp() {
      // runsc pins an empty network namespace for its file servers. Concurrent starts can pin it several times.
      while (unmount(join(options.stateDir, "null-netns"), { detach: true }));
      rmSync(options.stateDir, { recursive: true, force: true });
    },
  };
}
