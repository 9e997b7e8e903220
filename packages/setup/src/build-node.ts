// A node of the set-up's own. While a data folder is set up no platform runs, but the steps of the base template run in sandboxes, like those
// of any other build. The node has a folder and a name of its own, because the platform of the data folder may be running (`./skerry restart`).
// Its layers, files and cache are in that folder too, and nothing is left of it.

import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { agentCommand } from "@skerry/agent";
import { ConfigReader, createLogger } from "@skerry/base";
import type { BuildHost } from "@skerry/builder";
import { type LayerStore, openLayerStore } from "@skerry/layers";
import { cleanUpNode, createNode, type NodeConfig } from "@skerry/node";
import { AGENT_MOUNT_POINT } from "@skerry/runtime";
import type { CurrentAgent } from "./ensure-agent.ts";
import type { DataFolder } from "./folder/data-folder.ts";
import type { RuntimeName } from "./folder/settings.ts";
import { instanceOf, readSetUpFile, setUpRuntimes } from "./runtimes.ts";
import { readSiteSettings, siteNetworkOf } from "./site-network.ts";

const VARIABLES = ["SKERRY_CA_FILE", "SKERRY_DNS", "SKERRY_HTTP_PROXY", "SKERRY_HTTPS_PROXY", "SKERRY_NETWORK_POOL", "SKERRY_NO_PROXY"];

export interface BuildNodeOptions {
  readonly folder: DataFolder;
  /** What it builds. One node at a time can have this name. */
  readonly name: string;
  readonly runtime: RuntimeName;
  /** The operator's environment: name servers, proxies, certificate authorities. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface BuildNode extends AsyncDisposable {
  readonly host: BuildHost;
  /** The node's folder, for files of the build. */
  readonly dir: string;
  readonly layers: LayerStore;
}

/** Starts the node, after it has removed what a former one left. Preconditions: root; the caller has a lock for this name. */
export async function openBuildNode({ folder, name, runtime, env }: BuildNodeOptions): Promise<BuildNode> {
  // The rest of the environment is checked when the platform starts.
  const reader = new ConfigReader(Object.fromEntries(VARIABLES.map((name) => [name, env[name]])), "SKERRY_");
  const site = readSiteSettings(reader);
  const resolvers = reader.list("DNS", ["8.8.8.8"]);
  const networkPool = reader.optional("NETWORK_POOL");
  reader.finish();
  const siteNetwork = siteNetworkOf(site);
  await removeBuildNode(folder, name);
  const dir = join(folder.buildNodesDir, name);
  await mkdir(dir, { recursive: true, mode: 0o711 });
  const layers = await openBuildLayers(dir);
  const { digest, version } = readSetUpFile<CurrentAgent>(folder.agentFile);
  const runtimes = setUpRuntimes(folder, dir).filter((one) => one.name === runtime);
  const idle = idleNodeConfig({ dir, instance: instanceOf(dir), layers, runtimes });
  const node = await createNode(
    {
      ...idle,
      agents: {
        dir: folder.agentDir,
        current: { digest, version },
        command: agentCommand(process.arch === "arm64" ? "arm64" : "x64", { root: AGENT_MOUNT_POINT }),
      },
      networkPool,
      resolvers,
      ...(siteNetwork && { site: siteNetwork }),
    },
    quietLogger(),
  ).catch(async (error: unknown) => {
    await removeBuildNode(folder, name);
    throw error;
  });
  return {
    host: node.buildHost,
    dir,
    layers,
    async [Symbol.asyncDispose]() {
      await node.close();
      await removeBuildNode(folder, name);
    },
  };
}

/** Removes what nodes of set-ups left on the host. Does nothing if there is nothing. Preconditions: root; no set-up runs. */
export async function removeBuildNodes(folder: DataFolder): Promise<void> {
  const names = await readdir(folder.buildNodesDir).catch(() => []);
  for (const name of names) await removeBuildNode(folder, name);
}

async function removeBuildNode(folder: DataFolder, name: string): Promise<void> {
  const dir = join(folder.buildNodesDir, name);
  if (!existsSync(dir)) return;
  const layers = await openBuildLayers(dir);
  await cleanUpNode(idleNodeConfig({ dir, instance: instanceOf(dir), layers, runtimes: setUpRuntimes(folder, dir) }), quietLogger());
  await rm(dir, { recursive: true, force: true });
}

async function openBuildLayers(nodeDir: string): Promise<LayerStore> {
  const dir = join(nodeDir, "layers");
  await mkdir(dir, { recursive: true, mode: 0o711 });
  return await openLayerStore(dir);
}

/** The configuration of a node that starts no sandboxes of its own accord. */
export function idleNodeConfig(of: Pick<NodeConfig, "dir" | "instance" | "layers" | "runtimes">): NodeConfig {
  return {
    ...of,
    nodeId: `set-up-${of.instance}`,
    agents: { dir: "", current: { digest: "", version: "" }, command: [] },
    networkPool: undefined,
    resolvers: [],
    maxConnections: 8192,
    ipv6: false,
    readySlots: 0,
    // Existing areas are recognized by what they are.
    diskLimit: "none",
    readyAreas: 0,
    pool: { size: 0, memoryBudgetBytes: 0, settleMs: 0 },
  };
}

const quietLogger = () => createLogger({ name: "set-up", level: "error", fd: 2 });
