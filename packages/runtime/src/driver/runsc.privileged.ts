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

/** gVisor: a kernel in user space between the guest and the host. `stateDir` is created; keep its path short, sockets live in it. */
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
      // The platform that needs neither KVM nor ptrace.
      "--platform=systrap",
      // The guest's packets go through gVisor's own network stack, never through host sockets.
      "--network=sandbox",
      // The root file system is a host overlay already: files stay on disk, checkpoints hold memory only.
      "--overlay2=none",
      // Nothing but this sandbox changes its files while it runs, and the agent's tree never changes: no lookup has to be
      // checked again with the file server. Takes a third off the agent's start.
      "--file-access-mounts=exclusive",
      // Without it set-user-id programs (sudo) do nothing.
      "--allow-suid",
      // Connections of a sandbox that goes on from its own image go on too. Where the address is another one they end at once.
      "--allow-connected-on-save",
      // The guest's own groups, by which the agent limits its processes: version 1 of them miscounts when many start at once.
      "--in-sandbox-cgroup=v2",
    ],
  };
  return {
    fingerprint: fingerprintOf(driver),
    name: "gvisor",
    capabilities: { checkpoint: true, userNamespace: false },
    start: (plan) => bringUp(driver, plan, { args: ["run"], binary: driver.binary, spec: runscSpec(plan, driver.host) }),
    restore: (plan, image) => restoreContainer(driver, plan, image),
    survey: async ({ pid, rootDir }) => savingNeeds(await deletedFilesOf(pid, rootDir)),
    reduceMemory: ({ id }) => reduceMemory(options.stateDir, id),
    freeze: (target) => control(driver, target, ["pause"]),
    thaw: (target) => control(driver, target, ["resume"]),
    checkpoint: (target, imageDir) => checkpointContainer(driver, target, imageDir),
    destroy: (target) => destroyContainer(driver, target),
    endLeftCommands: () => endLeftCommands(options.stateDir),
    // State files are named `<id>_sandbox:<id>.state` and `.lock`.
    list: async () => [
      ...new Set(
        readdirSync(options.stateDir)
          .map((name) => /^([a-z0-9]+)_sandbox:/.exec(name)?.[1])
          .filter((id) => id !== undefined),
      ),
    ],
    async cleanUp() {
      // An empty network namespace that runsc pins for its file servers: as often as several of them began at once.
      while (unmount(join(options.stateDir, "null-netns"), { detach: true }));
      rmSync(options.stateDir, { recursive: true, force: true });
    },
  };
}
