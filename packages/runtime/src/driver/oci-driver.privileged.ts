// What runsc and runc have in common: both take a bundle and the same few verbs.

import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { asError, PlatformError, runCommand, SubprocessError } from "@skerry/base";
import { destroyCgroup } from "../cgroup.privileged.ts";
import type { ContainerPlan, StartedContainer } from "../runtime.ts";
import { buildSpec, type HostFacts } from "../spec/build-spec.ts";

export interface OciDriver {
  readonly binary: string;
  /** Flags before the verb. */
  readonly globalArgs: readonly string[];
  readonly host: HostFacts;
}

const START_TIMEOUT_MS = 60_000;

export async function startContainer(driver: OciDriver, plan: ContainerPlan): Promise<StartedContainer> {
  const log = join(plan.bundleDir, "runtime.log");
  const pidFile = join(plan.bundleDir, "pid");
  writeFileSync(join(plan.bundleDir, "config.json"), JSON.stringify(buildSpec(plan, driver.host)), { mode: 0o600 });
  // The sandbox keeps these descriptors for life. Nobody reads what a guest writes to them, and a file would be a way
  // round the disk limit, so they lead nowhere; the runtime's own words go to its log.
  const nowhere = openSync("/dev/null", "r+");
  try {
    await runCommand(
      driver.binary,
      [
        ...driver.globalArgs,
        `--log=${log}`,
        "--log-format=json",
        "run",
        "--detach",
        `--bundle=${plan.bundleDir}`,
        `--pid-file=${pidFile}`,
        plan.id,
      ],
      { outputFd: nowhere, timeoutMs: START_TIMEOUT_MS },
    );
    return { pid: Number(readFileSync(pidFile, "utf8")) };
  } catch (error) {
    throw new PlatformError("runtime_failed", `${driver.binary} did not start ${plan.id}: ${readLog(log)}`, { cause: asError(error) });
  } finally {
    closeSync(nowhere);
  }
}

export async function destroyContainer(driver: OciDriver, target: { id: string; cgroupPath: string }): Promise<void> {
  await destroyCgroup(target.cgroupPath);
  try {
    await runCommand(driver.binary, [...driver.globalArgs, "delete", "--force", target.id]);
  } catch (error) {
    // Both answer with an error when there is no such container, which is what we want to reach.
    if (!(error instanceof SubprocessError) || !/does not exist|not exist|no such file/i.test(error.stderr)) throw error;
  }
  // A runtime that was in the middle of starting may have made the group again.
  await destroyCgroup(target.cgroupPath);
}

function readLog(path: string): string {
  try {
    return readFileSync(path, "utf8").trim().split("\n").slice(-5).join(" | ").slice(-2000);
  } catch {
    return "it left no log";
  }
}
