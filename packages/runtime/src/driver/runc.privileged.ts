import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { asError, PlatformError } from "@skerry/base";
import { showNewBootId } from "../boot-id.privileged.ts";
import type { Runtime } from "../runtime.ts";
import type { HostFacts } from "../spec/build-spec.ts";
import { endLeftCommands } from "./left-commands.privileged.ts";
import { control, destroyContainer, fingerprintOf, type OciDriver, startContainer, TIME_LIMITS } from "./oci-driver.privileged.ts";

/** runc: sandboxes on the host's kernel, isolated by a user namespace, a seccomp allow-list and few capabilities. */
export function createRuncRuntime(options: { binary: string; stateDir: string; host: HostFacts }): Runtime {
  mkdirSync(options.stateDir, { recursive: true, mode: 0o700 });
  const driver: OciDriver = {
    binary: options.binary,
    host: options.host,
    timeLimits: TIME_LIMITS,
    globalArgs: [`--root=${options.stateDir}`],
  };
  return {
    fingerprint: fingerprintOf(driver),
    name: "runc",
    capabilities: { checkpoint: false, userNamespace: true },
    async start(plan) {
      if (!plan.userNamespace) throw new PlatformError("runtime_failed", `${plan.id} has no user namespace, which runc needs`);
      const started = await startContainer(driver, plan);
      try {
        showNewBootId({ pid: started.pid, bundleDir: plan.bundleDir });
      } catch (cause) {
        throw new PlatformError("runtime_failed", `${plan.id} has no boot id of its own: ${asError(cause).message}`, { cause });
      }
      return started;
    },
    restore: () => Promise.reject(noMemory()),
    checkpoint: () => Promise.reject(noMemory()),
    survey: () => Promise.reject(noMemory()),
    reduceMemory: () => Promise.resolve(),
    freeze: (target) => control(driver, target, ["pause"]),
    thaw: (target) => control(driver, target, ["resume"]),
    destroy: (target) => destroyContainer(driver, target),
    endLeftCommands: () => endLeftCommands(options.stateDir),
    list: async () => readdirSync(options.stateDir),
    cleanUp: async () => rmSync(options.stateDir, { recursive: true, force: true }),
  };
}

function noMemory(): PlatformError {
  return new PlatformError("runtime_unavailable", "runc cannot keep memory in images; gvisor can");
}
