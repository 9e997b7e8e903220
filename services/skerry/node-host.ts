// Derives a node's configuration from a data folder: its runtimes, agent tree and layers.

import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { hostname, totalmem } from "node:os";
import { join } from "node:path";
import { agentCommand } from "@skerry/agent";
import { asError, PlatformError } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { chooseDiskLimit, type DiskLimitSetting, openLayerStore } from "@skerry/layers";
import type { NodeConfig } from "@skerry/node";
import { AGENT_MOUNT_POINT, createRuncRuntime, createRunscRuntime, type Runtime, type RuntimeName, readHostFacts } from "@skerry/runtime";
import { type DataFolder, dataFolder } from "@skerry/setup/folder";
import { type ImagePullSettings, imagePullConfigOf } from "./image-settings.ts";
import { type SiteSettings, siteNetworkOf } from "./site-network.ts";

/** Default share of the host's memory for ready sandboxes. */
const POOL_MEMORY_SHARE = 0.1;
const POOL_SETTLE_MS = 6_000;

/** The platform's id on its host: a part of every name that it creates there. Derived from the path of the data folder. */
export function instanceOf(dataDir: string): string {
  return createHash("sha256").update(realpathSync(dataDir)).digest("hex").slice(0, 4);
}

export interface NodeSettings {
  readonly dataDir: string;
  readonly runtime: RuntimeName;
  readonly networkPool: string | undefined;
  readonly dns: readonly string[];
  readonly readySlots: number;
  readonly diskLimit: DiskLimitSetting;
  readonly poolSize: number;
  readonly poolMemoryMb: number;
  readonly site: SiteSettings;
  readonly images: ImagePullSettings;
  readonly buildsAtOnce: number;
  readonly blobsDir: string | undefined;
  readonly buildCacheDays: number;
}

/** Throws PlatformError("config_invalid") if the default runtime is not set up. */
export async function nodeConfigOf(settings: NodeSettings): Promise<NodeConfig> {
  const folder = dataFolder(realpathSync(settings.dataDir));
  const instance = instanceOf(folder.root);
  const runtimes = setUpRuntimes(folder).sort((a, b) => Number(b.name === settings.runtime) - Number(a.name === settings.runtime));
  if (runtimes[0]?.name !== settings.runtime) {
    throw new PlatformError(
      "config_invalid",
      `${settings.runtime} is not set up in ${folder.root}: run ./skerry up --runtime ${settings.runtime}`,
    );
  }
  const site = siteNetworkOf(settings.site);
  const { digest, version } = readJson<{ digest: string; version: string }>(folder.agentFile);
  const disk = await chooseDiskLimit({ dir: join(folder.nodeDir, "areas"), setting: settings.diskLimit });
  return {
    nodeId: `${hostname()}-${instance}`,
    instance,
    dir: folder.nodeDir,
    runtimes,
    layers: await openLayerStore(folder.layersDir),
    agents: {
      dir: folder.agentDir,
      current: { digest, version },
      command: agentCommand(process.arch === "arm64" ? "arm64" : "x64", { root: AGENT_MOUNT_POINT }),
    },
    networkPool: settings.networkPool,
    resolvers: settings.dns,
    ...(site === undefined ? {} : { site }),
    images: imagePullConfigOf(settings.images),
    readySlots: settings.readySlots,
    diskLimit: disk.limit,
    ...(disk.missing === undefined ? {} : { diskLimitMissing: disk.missing }),
    readyAreas: settings.readySlots,
    builds: {
      most: settings.buildsAtOnce,
      blobs: await openFolderBlobStore(settings.blobsDir ?? folder.blobsDir),
      cacheDays: settings.buildCacheDays,
    },
    pool: {
      size: settings.poolSize,
      settleMs: POOL_SETTLE_MS,
      memoryBudgetBytes: settings.poolMemoryMb === 0 ? totalmem() * POOL_MEMORY_SHARE : settings.poolMemoryMb * 1024 * 1024,
    },
  };
}

/** The runtimes in the data folder's tools.json. */
export function setUpRuntimes(folder: DataFolder): Runtime[] {
  const tools = readJson<{ runsc?: { path: string }; runc?: { path: string } }>(folder.toolsFile);
  const host = readHostFacts();
  const stateDir = (name: string) => join(folder.nodeDir, name);
  return [
    ...(tools.runsc ? [createRunscRuntime({ binary: tools.runsc.path, stateDir: stateDir("runsc"), host })] : []),
    ...(tools.runc ? [createRuncRuntime({ binary: tools.runc.path, stateDir: stateDir("runc"), host })] : []),
  ];
}

function readJson<T>(file: string): T {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch (error) {
    throw new PlatformError("config_invalid", `${file} can't be read: run ./skerry up to set up this host`, { cause: asError(error) });
  }
}
