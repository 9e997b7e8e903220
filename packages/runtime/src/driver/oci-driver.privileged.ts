// Code that runsc and runc share: both use OCI bundles and the same verbs.

import { createHash } from "node:crypto";
import { appendFileSync, closeSync, existsSync, openSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { asError, PlatformError, runCommand, SubprocessError } from "@skerry/base";
import { destroyCgroup } from "../cgroup.privileged.ts";
import { readCpuFeatures } from "../cpu-features.ts";
import type { ContainerPlan, ContainerRef, StartedContainer } from "../runtime.ts";
import { buildSpec, type HostFacts } from "../spec/build-spec.ts";
import type { OciSpec } from "../spec/oci.ts";

export interface OciDriver {
  /** Path of the program for new sandboxes. Earlier versions are in the same folder, for sandboxes that were started with them. */
  readonly binary: string;
  /** Flags before the verb. */
  readonly globalArgs: readonly string[];
  readonly host: HostFacts;
  readonly timeLimits: TimeLimits;
}

/** Time limits of runtime commands, in milliseconds, which detect a runtime that hangs. */
export interface TimeLimits {
  readonly start: number;
  readonly control: number;
  readonly checkpoint: number;
  readonly destroy: number;
}

/** A checkpoint of 1 GiB takes half a second in memory, and tens of seconds on a slow disk. */
export const TIME_LIMITS: TimeLimits = { start: 60_000, control: 20_000, checkpoint: 120_000, destroy: 60_000 };

/** See `Runtime.fingerprint`. */
export function fingerprintOf(driver: OciDriver): string {
  const plan: ContainerPlan = {
    id: "",
    bundleDir: "",
    rootDir: "",
    agentDir: "",
    args: [],
    hostname: "",
    networkNamespacePath: "",
    cgroupPath: "",
    limits: { cpuCount: 1, memoryBytes: 1, overheadBytes: 0, pids: 1 },
  };
  const about = [basename(driver.binary), driver.globalArgs, buildSpec(plan, driver.host), readCpuFeatures()];
  return createHash("sha256").update(JSON.stringify(about)).digest("hex");
}

/** How to start a sandbox: `run` a new one, or `restore` an image. */
export interface StartVerb {
  readonly args: readonly string[];
  readonly binary: string;
  readonly spec: OciSpec;
  /** Added to the time limit, in milliseconds. */
  readonly extraMs?: number;
}

export async function startContainer(driver: OciDriver, plan: ContainerPlan): Promise<StartedContainer> {
  return bringUp(driver, plan, { args: ["run"], binary: driver.binary, spec: buildSpec(plan, driver.host) });
}

/** Throws PlatformError("runtime_failed") with the message of the runtime. */
export async function bringUp(driver: OciDriver, plan: ContainerPlan, verb: StartVerb): Promise<StartedContainer> {
  const log = join(plan.bundleDir, "runtime.log");
  const pidFile = join(plan.bundleDir, "pid");
  writeFileSync(join(plan.bundleDir, "config.json"), JSON.stringify(verb.spec), { mode: 0o600 });
  // The sandbox keeps these descriptors for its lifetime. Nobody reads them, and a file would bypass the disk limit, so they are
  // /dev/null. The runtime writes its own messages to its log.
  const nowhere = openSync("/dev/null", "r+");
  try {
    await runCommand(
      verb.binary,
      [
        ...driver.globalArgs,
        `--log=${log}`,
        "--log-format=json",
        ...verb.args,
        "--detach",
        `--bundle=${plan.bundleDir}`,
        `--pid-file=${pidFile}`,
        plan.id,
      ],
      { outputFd: nowhere, timeoutMs: driver.timeLimits.start + (verb.extraMs ?? 0) },
    );
    return { pid: Number(readFileSync(pidFile, "utf8")), binary: basename(verb.binary) };
  } catch (error) {
    const words = readLog(log);
    const cause = asError(words === "" ? (whyEmpty(log) ?? error) : error);
    throw new PlatformError("runtime_failed", `${verb.binary} did not start ${plan.id}: ${words || cause.message}`, { cause });
  } finally {
    closeSync(nowhere);
  }
}

/** The path of the program with this file name. Throws PlatformError("image_unusable") when it no longer exists. */
export function binaryOf(driver: OciDriver, name: string | undefined): string {
  if (name === undefined || name === basename(driver.binary)) return driver.binary;
  const path = join(dirname(driver.binary), name);
  if (!existsSync(path)) throw new PlatformError("image_unusable", `it was made with ${name}, which this machine no longer has`);
  return path;
}

/** Runs a verb that all runtimes have. Throws PlatformError("runtime_failed"). */
export async function control(
  driver: OciDriver,
  target: ContainerRef,
  verb: readonly string[],
  timeoutMs = driver.timeLimits.control,
): Promise<void> {
  try {
    await runCommand(binaryOf(driver, target.binary), [...driver.globalArgs, ...verb, target.id], { timeoutMs });
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    throw new PlatformError("runtime_failed", `${verb[0]} of ${target.id} failed: ${asError(error).message}`, { cause: asError(error) });
  }
}

export async function destroyContainer(driver: OciDriver, target: ContainerRef & { cgroupPath: string }): Promise<void> {
  await destroyCgroup(target.cgroupPath);
  try {
    // Each version can remove the state of the others, and the program of this sandbox may no longer exist.
    await runCommand(driver.binary, [...driver.globalArgs, "delete", "--force", target.id], {
      timeoutMs: driver.timeLimits.destroy,
    });
  } catch (error) {
    // Both runtimes fail when the container does not exist, which is the desired state.
    if (!(error instanceof SubprocessError) || !/does not exist|not exist|no such file/i.test(error.stderr)) throw error;
  }
  // A runtime that was starting the sandbox may have created the cgroup again.
  await destroyCgroup(target.cgroupPath);
}

/** The error of a full disk, for a runtime that left no message. The check writes 1 MiB, because a few blocks may be free again. */
function whyEmpty(path: string): unknown {
  try {
    appendFileSync(path, Buffer.alloc(2 ** 20));
    truncateSync(path);
    return undefined;
  } catch (error) {
    return error;
  }
}

function readLog(path: string): string {
  try {
    return readFileSync(path, "utf8").trim().split("\n").slice(-5).join(" | ").slice(-2000);
  } catch {
    return "the runtime left no log";
  }
}
