// Checkpoint and restore with gVisor. A checkpoint holds memory and the state of gVisor's kernel; files stay in the overlay's `upper`.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { asError, PlatformError, SubprocessError } from "@skerry/base";
import { memoryLimitFiles } from "../cgroup.privileged.ts";
import { readCpuFeatures } from "../cpu-features.ts";
import type { ContainerPlan, ContainerRef, MemoryImage, StartedContainer } from "../runtime.ts";
import { buildSpec, type HostFacts } from "../spec/build-spec.ts";
import { raisingMemoryLimit } from "../spec/memory-hook.ts";
import { moveSpec, withoutPlace } from "../spec/move-spec.ts";
import type { OciSpec } from "../spec/oci.ts";
import { binaryOf, bringUp, control, type OciDriver } from "./oci-driver.privileged.ts";
import { refusalIn, shown } from "./saving-needs.ts";

/** The specification of a sandbox on gVisor, for a boot and for a restore. */
export function runscSpec(plan: ContainerPlan, host: HostFacts): OciSpec {
  const limitFiles = memoryLimitFiles(plan.cgroupPath);
  return raisingMemoryLimit(buildSpec(plan, host), { guestBytes: plan.limits.memoryBytes, limitFiles });
}

/** Slowest assumed rate of a restore of deleted files, in bytes of gVisor's heap. Measured: 100 MB/s on two busy CPUs. */
const RESTORED_BYTES_PER_MS = 20_000;

/**
 * Writes a checkpoint of a frozen sandbox. With `--leave-running` the sandbox stays frozen: nothing changes between the checkpoint and the
 * next step, and the sandbox can continue when the disk fills up. Without it the sandbox would end in any case.
 */
export async function checkpointContainer(
  driver: OciDriver,
  target: ContainerRef & { bundleDir: string },
  imageDir: string,
): Promise<MemoryImage> {
  const verb = ["checkpoint", "--leave-running", "--exclude-committed-zero-pages", `--image-path=${imageDir}`];
  try {
    await control(driver, target, verb, driver.timeLimits.checkpoint);
  } catch (error) {
    throw (error instanceof PlatformError && error.cause instanceof SubprocessError && refusalIn(error.cause.stderr)) || error;
  }
  const spec = JSON.parse(readFileSync(join(target.bundleDir, "config.json"), "utf8")) as OciSpec;
  const empty = readdirSync(imageDir).find((name) => statSync(join(imageDir, name)).size === 0);
  if (empty !== undefined) throw new PlatformError("runtime_failed", `checkpoint of ${target.id} left an empty ${empty}`);
  return {
    dir: imageDir,
    binary: basename(binaryOf(driver, target.binary)),
    cpuFeatures: readCpuFeatures(),
    spec: withoutPlace(spec),
  };
}

export async function restoreContainer(driver: OciDriver, plan: ContainerPlan, image: MemoryImage): Promise<StartedContainer> {
  const binary = binaryOf(driver, image.binary);
  const missing = image.cpuFeatures.filter((feature) => !readCpuFeatures().includes(feature));
  if (missing.length > 0) {
    throw new PlatformError("image_unusable", `it was made on a processor with ${missing.slice(0, 5).join(", ")}, which this one lacks`);
  }
  const spec = moveSpec(image.spec, runscSpec(plan, driver.host));
  const extraMs = (image.extraMemoryBytes ?? 0) / RESTORED_BYTES_PER_MS;
  try {
    return await bringUp(driver, plan, { args: ["restore", `--image-path=${image.dir}`], binary, spec, extraMs });
  } catch (error) {
    // A timeout does not mean that the image is unusable, and must not cost the sandbox its memory.
    if (isTimeout(error)) throw error;
    const why = missingFileIn(asError(error).message) ?? `the runtime could not bring it back: ${asError(error).message}`;
    throw new PlatformError("image_unusable", why, { cause: asError(error) });
  }
}

/**
 * What is missing in a volume, if a restore failed for that reason: other sandboxes may have removed or replaced what a process had open.
 * `message` has the message of the runtime as JSON.
 */
export function missingFileIn(message: string): string | undefined {
  const match = /failed to walk \\"((?:[^"\\]|\\.){0,4096})\\" of type 0\d+ in mount \\"[^"\\]*:(\/[^"\\]*)\\"/.exec(message);
  if (!match) return undefined;
  return `a process had ${shown(`${match[2]}/${match[1]}`)} open, which was removed from its volume or replaced meanwhile`;
}

function isTimeout(error: unknown): boolean {
  return error instanceof PlatformError && error.cause instanceof SubprocessError && error.cause.timedOut;
}
