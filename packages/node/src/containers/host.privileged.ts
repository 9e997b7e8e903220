// Acquires and releases everything that a container holds on the host.
//
// Order of acquisition: folder and record, area, mount, network policy, runtime. The release runs the other way. It is safe after any part
// of the acquisition, for any record, and any number of times: failed creates, kills, pauses, crashes and `down` all use it. Areas are not
// released here, because only the caller knows what else refers to them.

import { chownSync, mkdirSync, realpathSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { errnoOf, type Logger, PlatformError } from "@skerry/base";
import { type DiskAreas, removeRootFilesystem } from "@skerry/layers";
import type { ContainerLimits, ContainerPlan, MemoryImage, NetworkNames, Runtime, StartedContainer } from "@skerry/runtime";
import type { NodeConfig } from "../config.ts";
import { crashPoint } from "../crash-points.ts";
import { memoryPlan } from "../limits/memory-plan.ts";
import { hostProcessLimit } from "../limits/process-limit.ts";
import type { NetworkPolicy } from "../network/network-policy.ts";
import type { NodePaths } from "../paths.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { moveToTrash } from "../trash.privileged.ts";
import { mountVolumes, unmountVolumes } from "../volumes/sandbox-volumes.privileged.ts";
import type { VolumeStore } from "../volumes/volume-store.privileged.ts";
import { writeRecord } from "./journal.privileged.ts";
import { mountRoot } from "./root.privileged.ts";
import { markTmp, writeRootFiles } from "./root-files.privileged.ts";

/** The same in every sandbox, because a ready sandbox boots before its owner is known. */
const HOSTNAME = "sandbox";

export interface HostDeps {
  readonly config: NodeConfig;
  readonly paths: NodePaths;
  readonly names: NetworkNames;
  readonly policy: NetworkPolicy;
  readonly areas: DiskAreas;
  readonly volumes: VolumeStore;
  readonly logger: Logger;
}

/** The dependencies of a release. */
export type ReleaseDeps = Pick<HostDeps, "config" | "paths" | "names">;

export interface StartRequest {
  readonly record: SandboxRecord;
  /** `written`: the area exists and holds data. `prepared`: it exists and is empty. `new`: it must be made. */
  readonly area: "written" | "prepared" | "new";
  /** The operation is past its point of no return: the area is made as long as there is any free space. */
  readonly isDue?: boolean;
  /** The memory to restore. Absent: the sandbox boots. */
  readonly memory?: MemoryImage;
}

export function cgroupPathOf(instance: string, containerId: string): string {
  return `/skerry-${instance}/${containerId}`;
}

/** Acquires everything and starts the container. On failure the caller must release it. */
export async function takeAndStart(deps: HostDeps, { record, area, isDue = false, memory }: StartRequest): Promise<StartedContainer> {
  const { config, paths, policy, areas } = deps;
  const own = paths.container(record.containerId);
  const ownerId = record.slot.userNamespace?.idBase ?? 0;
  mkdirSync(own.dir, { mode: 0o710 });
  crashPoint("start.folder-made");
  // Only root of the sandbox's user namespace may pass through this folder, to its root file system.
  chownSync(own.dir, 0, ownerId);
  writeRecord(paths, record);
  crashPoint("start.recorded");
  for (const dir of [own.bundle, own.root]) mkdirSync(dir, { mode: 0o755 });
  for (const frozen of record.frozenAreas) await areas.open(frozen, { readOnly: true });
  if (area === "new") await areas.create(record.area, { sizeMb: record.size.diskSizeMb, ownerId, isDue });
  else await areas.open(record.area);
  crashPoint("start.area-made");
  if (area !== "written" && record.frozenAreas.length > 0) areas.charge(record.area, record.frozenAreas);
  const { upper } = areas.paths(record.area);
  // An area above frozen ones has these files already.
  if (area !== "written" && record.frozenAreas.length === 0)
    writeRootFiles({ upper, hostname: HOSTNAME, resolvers: config.resolvers, ownerId });
  else if (!memory) areas.withRoom(record.area, () => markTmp(upper, ownerId));
  await mountRoot(deps, record, own.root);
  crashPoint("start.mounted");
  const volumes = await mountVolumes(deps, record);
  crashPoint("start.volumes-mounted");
  await policy.apply(record.slot, record.options);
  const runtime = runtimeOf(config, record.runtime);
  const plan: ContainerPlan = { ...planOf(deps, record), ...(volumes.length > 0 ? { volumes } : {}) };
  const started = memory ? await runtime.restore(plan, memory) : await runtime.start(plan);
  crashPoint("start.started");
  return started;
}

function planOf({ config, paths }: HostDeps, record: SandboxRecord): ContainerPlan {
  const own = paths.container(record.containerId);
  const { userNamespace } = record.slot;
  return {
    id: record.containerId,
    bundleDir: own.bundle,
    rootDir: own.root,
    agentDir: agentDirOf(config, record.agent.digest),
    args: config.agents.command,
    hostname: HOSTNAME,
    networkNamespacePath: record.slot.namespacePath,
    ...(userNamespace ? { userNamespace } : {}),
    cgroupPath: record.cgroupPath,
    limits: containerLimits(record),
  };
}

/** The agent's tree on this host: a real path, because runsc does not follow links in its configuration. */
function agentDirOf({ agents }: NodeConfig, digest: string): string {
  try {
    return realpathSync(join(agents.dir, digest));
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    throw new PlatformError("image_unusable", `the agent that it was made with (${digest}) is not on this host`, { cause: error });
  }
}

/** Ends the container, and releases everything except its network slot and its areas. Its files are moved to the trash. */
export async function release(deps: ReleaseDeps, containerId: string, runtimeName?: string): Promise<void> {
  const { config, paths } = deps;
  const own = paths.container(containerId);
  const cgroupPath = cgroupPathOf(config.instance, containerId);
  // When the runtime is unknown or not set up any more, each runtime is asked.
  const known = config.runtimes.filter((runtime) => runtime.name === runtimeName);
  for (const runtime of known.length > 0 ? known : config.runtimes) await runtime.destroy({ id: containerId, cgroupPath });
  crashPoint("release.processes-ended");
  unmountVolumes(own);
  removeRootFilesystem(own.root);
  crashPoint("release.unmounted");
  moveToTrash(paths, own.dir);
  crashPoint("release.folder-moved");
}

export function runtimeOf(config: NodeConfig, name: string): Runtime {
  const runtime = name === "" ? config.runtimes[0] : config.runtimes.find((one) => one.name === name);
  if (!runtime) {
    const here = config.runtimes.map((one) => one.name).join(", ") || "none";
    throw new PlatformError("runtime_unavailable", `runtime ${name || "(default)"} is not set up on this machine; here: ${here}`);
  }
  return runtime;
}

function containerLimits({ size, runtime, extraMemoryBytes = 0 }: SandboxRecord): ContainerLimits {
  const { guestBytes, hostBytes } = memoryPlan(size.memoryMb, runtime);
  return {
    cpuCount: Math.min(size.cpuCount, availableParallelism()),
    memoryBytes: guestBytes,
    overheadBytes: hostBytes - guestBytes + extraMemoryBytes,
    pids: hostProcessLimit(size.memoryMb, runtime),
  };
}
