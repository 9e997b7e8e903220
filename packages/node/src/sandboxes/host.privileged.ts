// Everything that one sandbox holds on this machine, taken and given back in one place.
//
// Order of taking: folder and record, files, mount, firewall mark, runtime. Giving back runs the other way and is safe at any
// point of it, for any record, any number of times: it is what a failed create, a kill, a crash and `down` all use.

import { chownSync, closeSync, mkdirSync, openSync, renameSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import { mountRootFilesystem, parseLayerDigest, unmountRootFilesystem } from "@skerry/layers";
import { blockInternet, type ContainerLimits, type NetworkNames, type Runtime, type StartedContainer } from "@skerry/runtime";
import type { NodeConfig } from "../config.ts";
import type { NodePaths } from "../paths.ts";
import { type SandboxRecord, writeRecord } from "./journal.privileged.ts";
import { writeRootFiles } from "./root-files.privileged.ts";

const MIB = 1024 * 1024;
/** gVisor's own kernel and file server, and the agent, live in the same cgroup as the guest. */
const OVERHEAD_BYTES = 128 * MIB;
const PID_LIMIT = 4096;

export interface HostDeps {
  readonly config: NodeConfig;
  readonly paths: NodePaths;
  readonly names: NetworkNames;
}

export function cgroupPathOf(instance: string, sandboxId: string): string {
  return `/skerry-${instance}/${sandboxId}`;
}

/** Takes everything and starts the sandbox. On failure the caller releases. */
export async function takeAndStart(
  deps: HostDeps,
  record: SandboxRecord,
  limits: { cpuCount: number; memoryMb: number },
): Promise<StartedContainer> {
  const { config, paths, names } = deps;
  const own = paths.sandbox(record.sandboxId);
  const layers = await Promise.all(record.layers.map((digest) => config.layers.path(parseLayerDigest(digest))));
  const { userNamespace } = record.slot;
  mkdirSync(own.dir, { mode: 0o710 });
  // Root of the sandbox's user namespace has to pass through on the way to its root file system, and nobody else.
  chownSync(own.dir, 0, userNamespace?.idBase ?? 0);
  writeRecord(paths, record);
  for (const dir of [own.bundle, own.upper, own.work, own.root]) mkdirSync(dir, { mode: 0o755 });
  writeRootFiles({ upper: own.upper, sandboxId: record.sandboxId, resolvers: config.resolvers, ownerId: userNamespace?.idBase ?? 0 });
  const usernsFd = userNamespace ? openSync(userNamespace.path, "r") : undefined;
  try {
    mountRootFilesystem({ layers, upper: own.upper, work: own.work, target: own.root, ...(usernsFd === undefined ? {} : { usernsFd }) });
  } finally {
    if (usernsFd !== undefined) closeSync(usernsFd);
  }
  if (!record.allowInternetAccess) await blockInternet(names, record.slot.hostInterface);
  return runtimeOf(config, record.runtime).start({
    id: record.sandboxId,
    bundleDir: own.bundle,
    rootDir: own.root,
    agentDir: config.agent.dir,
    args: config.agent.command,
    hostname: record.sandboxId,
    networkNamespacePath: record.slot.namespacePath,
    ...(userNamespace ? { userNamespace } : {}),
    cgroupPath: record.cgroupPath,
    limits: containerLimits(limits),
  });
}

/** Ends the sandbox and gives back all but its network slot. Its files go to the trash, which is emptied elsewhere. */
export async function release(deps: HostDeps, sandboxId: string, runtimeName?: string): Promise<void> {
  const { config, paths } = deps;
  const own = paths.sandbox(sandboxId);
  const cgroupPath = cgroupPathOf(config.instance, sandboxId);
  // Without a record, or with a runtime that is not set up any more, each one is asked.
  const known = config.runtimes.filter((runtime) => runtime.name === runtimeName);
  for (const runtime of known.length > 0 ? known : config.runtimes) await runtime.destroy({ id: sandboxId, cgroupPath });
  unmountRootFilesystem(own.root);
  try {
    renameSync(own.dir, join(paths.trash, sandboxId));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

export function runtimeOf(config: NodeConfig, name: string): Runtime {
  const runtime = name === "" ? config.runtimes[0] : config.runtimes.find((one) => one.name === name);
  if (!runtime) {
    const here = config.runtimes.map((one) => one.name).join(", ") || "none";
    throw new PlatformError("runtime_unavailable", `runtime ${name || "(default)"} is not set up on this machine; here: ${here}`);
  }
  return runtime;
}

function containerLimits(limits: { cpuCount: number; memoryMb: number }): ContainerLimits {
  return {
    cpuCount: Math.min(limits.cpuCount, availableParallelism()),
    memoryBytes: limits.memoryMb * MIB,
    overheadBytes: OVERHEAD_BYTES,
    pids: PID_LIMIT,
  };
}
