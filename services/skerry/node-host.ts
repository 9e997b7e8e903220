// Derives a node's configuration from a data folder: its runtimes, agent tree and layers.

import { realpathSync, statSync } from "node:fs";
import { hostname, totalmem } from "node:os";
import { isAbsolute, join } from "node:path";
import { agentCommand } from "@skerry/agent";
import { LIMITS, type Limits } from "@skerry/api";
import { errnoOf, PlatformError } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { chooseDiskLimit, type DiskLimitSetting, openLayerStore } from "@skerry/layers";
import type { NodeConfig } from "@skerry/node";
import { AGENT_MOUNT_POINT, hasIpv6, hasIpv6Route, type RuntimeName } from "@skerry/runtime";
import { dataFolder } from "@skerry/setup/folder";
import { instanceOf, readSetUpFile, setUpRuntimes } from "@skerry/setup/runtimes";
import { type SiteSettings, siteNetworkOf } from "@skerry/setup/site-network";
import { type ImagePullSettings, imagePullConfigOf } from "./image-settings.ts";

/** Default share of the host's memory for ready sandboxes. */
const POOL_MEMORY_SHARE = 0.1;
const POOL_SETTLE_MS = 6_000;

export interface NodeSettings {
  readonly dataDir: string;
  readonly runtime: RuntimeName;
  readonly networkPool: string | undefined;
  readonly dns: readonly string[];
  readonly allowPrivate: readonly string[];
  readonly ipv6: "auto" | "on" | "off";
  readonly limits: Pick<Limits, "sandboxConnections">;
  readonly readySlots: number;
  readonly diskLimit: DiskLimitSetting;
  readonly poolSize: number;
  readonly poolMemoryMb: number;
  readonly site: SiteSettings;
  readonly images: ImagePullSettings;
  readonly buildsAtOnce: number;
  readonly blobsDir: string | undefined;
  readonly volumesDir?: string | undefined;
  readonly buildCacheDays: number;
}

/** The name of the node of a data folder, which depends on the host's name and the folder's real path. */
export const nodeIdOf = (dataDir: string): string => `${hostname()}-${instanceOf(dataDir)}`;

/** The real path of the folder of volumes, which the operator has made: a missing one may be a disk that is not mounted. */
function realFolder(path: string): string {
  try {
    if (isAbsolute(path) && statSync(path).isDirectory()) return realpathSync(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  throw new PlatformError("config_invalid", `SKERRY_VOLUMES must be the absolute path of a directory, and ${path} is none`);
}

function ipv6Of({ ipv6 }: Pick<NodeSettings, "ipv6">): boolean {
  if (ipv6 === "on" && !hasIpv6()) throw new PlatformError("config_invalid", "SKERRY_IPV6 is on, but the kernel of this host has no IPv6");
  return ipv6 === "on" || (ipv6 === "auto" && hasIpv6Route());
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
  const { digest, version } = readSetUpFile<{ digest: string; version: string }>(folder.agentFile);
  const disk = await chooseDiskLimit({ dir: join(folder.nodeDir, "areas"), setting: settings.diskLimit });
  return {
    nodeId: nodeIdOf(folder.root),
    instance,
    dir: folder.nodeDir,
    ...(settings.volumesDir === undefined ? {} : { volumesDir: realFolder(settings.volumesDir) }),
    runtimes,
    layers: await openLayerStore(folder.layersDir),
    agents: {
      dir: folder.agentDir,
      current: { digest, version },
      command: agentCommand(process.arch === "arm64" ? "arm64" : "x64", { root: AGENT_MOUNT_POINT }),
    },
    networkPool: settings.networkPool,
    resolvers: settings.dns,
    allowPrivate: settings.allowPrivate,
    ipv6: ipv6Of(settings),
    maxConnections: settings.limits.sandboxConnections ?? LIMITS.sandboxConnections.max,
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
