// gVisor's images: memory and the kernel's state in a directory. Files stay where they are, in the overlay's `upper`.

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
import { refusalIn } from "./saving-needs.ts";

/** What a sandbox on gVisor starts with, from its layers or from an image. */
export function runscSpec(plan: ContainerPlan, host: HostFacts): OciSpec {
  const limitFiles = memoryLimitFiles(plan.cgroupPath);
  return raisingMemoryLimit(buildSpec(plan, host), { guestBytes: plan.limits.memoryBytes, limitFiles });
}

/** How fast gVisor's heap fills at the least while deleted files come back; 100 MB/s have been seen on two busy processors. */
const RESTORED_BYTES_PER_MS = 20_000;

/**
 * `--leave-running` on a frozen sandbox: it stays frozen, so nothing changes between the image and what comes next, and when
 * the disk fills up in the middle it can still go on. Without it the sandbox would be gone either way.
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
    // Too slow today proves nothing about the image: it must not cost the sandbox its memory.
    if (isTimeout(error)) throw error;
    throw new PlatformError("image_unusable", `the runtime could not bring it back: ${asError(error).message}`, { cause: asError(error) });
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof PlatformError && error.cause instanceof SubprocessError && error.cause.timedOut;
}
