import { availableParallelism } from "node:os";
import type { Duplex } from "node:stream";
import type { ServiceImpl } from "@connectrpc/connect";
import { asError, type Logger, type Secret } from "@skerry/base";
import type { BuildHost } from "@skerry/builder";
import { limitProcesses, networkNames, raiseHostLimits } from "@skerry/runtime";
import type { NodeService } from "@skerry/wire/node";
import { areasOf } from "./areas/disk-areas.privileged.ts";
import { Builds } from "./builds/builds.ts";
import { NodeBuildHost } from "./builds/node-build-host.ts";
import { openBuilder } from "./builds/run-build.ts";
import type { NodeConfig } from "./config.ts";
import { Containers, type ContainersOptions } from "./containers/containers.ts";
import { type HostDeps, runtimeOf } from "./containers/host.privileged.ts";
import type { JournalEntry } from "./containers/journal.privileged.ts";
import {
  type Adopted,
  adoptSandboxes,
  emptyTrash,
  hasSetAside,
  makeNodeFolders,
  readRecords,
  removeRemains,
  removeStrayAreas,
} from "./containers/recover.privileged.ts";
import { DiskReserve } from "./disk/disk-reserve.privileged.ts";
import { readDiskSpace } from "./disk/disk-space.privileged.ts";
import { startDiskGuard } from "./disk/start-disk-guard.ts";
import { EgressProxy } from "./egress/egress-proxy.ts";
import { EgressLog } from "./egress-log/egress-log.ts";
import { ImageStore } from "./images/image-store.privileged.ts";
import { ImageUses } from "./images/image-uses.ts";
import { ImageWriter } from "./images/image-writer.ts";
import { keepOutEarlierVersions, lockInstance } from "./instance-lock.privileged.ts";
import { interceptTls } from "./interception/intercept-tls.ts";
import { Interceptions } from "./interception/interceptions.ts";
import { UnusedLayers } from "./layers/unused-layers.privileged.ts";
import { NetworkPolicy } from "./network/network-policy.ts";
import { chooseAddressPool } from "./network/pool-choice.privileged.ts";
import type { PoolReservation } from "./network/pool-reservation.ts";
import { siteKey } from "./network/site-network.ts";
import { SiteProxies } from "./network/site-proxies.ts";
import { SlotPool } from "./network/slot-pool.privileged.ts";
import { observeNode } from "./observe-node.ts";
import { OutputLog } from "./output-log/output-log.ts";
import { nodePaths } from "./paths.ts";
import { TemplateImages } from "./pool/template-images.ts";
import { WarmPool } from "./pool/warm-pool.ts";
import type { SandboxRecord } from "./records/sandbox-record.ts";
import { ClusterIdentity, forOwnCluster } from "./rpc/cluster-identity.privileged.ts";
import { dialSandbox } from "./rpc/dial.ts";
import { listenNodeServer } from "./rpc/server.ts";
import { nodeService } from "./rpc/service.ts";
import { traceCalls } from "./rpc/trace-calls.ts";
import { Keeper } from "./sandboxes/keeper.privileged.ts";
import { Sandboxes } from "./sandboxes/sandboxes.ts";
import { Snapshots } from "./sandboxes/snapshots.ts";
import { StartGate } from "./sandboxes/start-gate.ts";
import { Starter } from "./sandboxes/starter.ts";
import { UsageMeter } from "./usage/usage-meter.ts";
import { findUsers, startVolumes, volumesOf } from "./volumes/sandbox-volumes.privileged.ts";

/** Space that records, the database and the log need on a full disk, while the node pauses the sandboxes that filled it. */
const RESERVE_BYTES = 64 * 1024 * 1024;
const MAX_WAITING_STARTS = 1000;
/** How long a start may wait for its turn: less than clients wait for a create. */
const MAX_WAIT_MS = 30_000;

export interface Node {
  readonly service: ServiceImpl<typeof NodeService>;
  /** For builds that run in this process. */
  readonly buildHost: BuildHost;
  /** Opens a byte stream to a port inside a sandbox. Throws PlatformError("sandbox_gone" | "port_closed"). */
  dial(target: { sandboxId: string; port: number }, signal?: AbortSignal): Promise<Duplex>;
  /** Serves the RPC and tunnels on a socket, for roles that run elsewhere. */
  listen(options: { host: string; port: number; secret: Secret }): Promise<{ port: number; close(): Promise<void> }>;
  /** Leaves the sandboxes running; the next start adopts them. */
  close(): Promise<void>;
}

/** Starts the daemon of this host: adopts running sandboxes, removes leftovers, prepares network slots. Preconditions: root. */
export async function createNode(config: NodeConfig, logger: Logger): Promise<Node> {
  const paths = nodePaths(config.dir);
  const names = networkNames(config.instance);
  const certificates = config.site?.reveal().certificates ?? "";
  const interceptions = new Interceptions(certificates);
  const egressLog = new EgressLog({ names, file: paths.egress, logger });
  const outputLog = new OutputLog({ file: paths.output, logger });
  const egress = new EgressProxy({
    resolvers: config.resolvers,
    certificates,
    intercept: interceptTls(interceptions),
    onRecord: (address, record) => egressLog.record(address, record),
    logger,
  });
  const policy = new NetworkPolicy(names, { proxy: egress, interceptions, egressLog });
  const deps = { config, paths, names, policy, areas: areasOf(config, logger), volumes: volumesOf(config, logger), logger };
  makeNodeFolders(paths, config.dir);
  if (config.diskLimitMissing !== undefined) logger.warn({ why: config.diskLimitMissing }, "the sizes of sandbox disks are not limited");
  const lock = lockInstance(config.dir);
  const images = new ImageStore(paths);
  const journal = readRecords(paths, images, lock);
  startVolumes(deps, lock);
  // The first change. Whatever refuses to start has done so by now.
  keepOutEarlierVersions(config.dir);
  const reserve = new DiskReserve(paths.reserve, RESERVE_BYTES);
  if (readDiskSpace(config.dir).freeBytes < RESERVE_BYTES && reserve.release())
    logger.warn({}, "the data disk is full: its reserve was released");
  for (const imageId of images.damaged) {
    logger.error({ image_id: imageId }, "image.json is damaged: nothing starts from this image, and the node deletes no unused disks");
  }
  const adopted = await recover(deps, { images, journal }, logger);
  const proxies = new SiteProxies({ site: config.site, logger });
  const { pools, reservation } = await openNetwork(deps, { images, adopted: allOf(adopted), proxies, logger });
  const { containers, sandboxes, warmPool, layers, buildHost, builds, gate } = await assemble(deps, {
    images,
    pools,
    adopted,
    egressLog,
    outputLog,
    logger,
  });

  const holdsAnything = () =>
    sandboxes.list().length > 0 ||
    builds.isBusy ||
    deps.volumes.holdsAnything ||
    images.damaged.size > 0 ||
    images.list().some(({ kind }) => kind !== "template");
  const onChange = (change: { from: string; to: string }) => layers.changeCluster(change);
  const identity = new ClusterIdentity({ file: paths.cluster, holdsAnything, onChange, logger });
  // A change to another cluster that a crash cut off left a hold on the layers of this one.
  layers.changeCluster({ from: "", to: identity.id });
  const usage = new UsageMeter({ containers, areas: deps.areas, logger });
  const readiness = () => ({
    readySandboxes: warmPool.readyCount,
    readySlots: pools.plain.readyCount + pools.withUserNamespace.readyCount,
    startsRunning: gate.counts.running,
    startsWaiting: gate.counts.waiting,
    startsLimit: Math.floor(gate.counts.limit),
  });
  const serviceParts = { config, sandboxes, images, layers, builds, usage, egressLog, outputLog, volumes: deps.volumes, readiness };
  const service = forOwnCluster(traceCalls(nodeService(serviceParts)), identity);
  usage.start();
  const diskGuard = startDiskGuard({ deps, containers, reserve, onShort: (user, facts) => sandboxes.pauseForDisk(user, facts), logger });
  const endObserving = observeNode({ config, sandboxes, images, pools, warmPool, gate, builds });
  async function close(): Promise<void> {
    endObserving();
    await builds.close();
    await usage.close();
    proxies.close();
    await diskGuard.close();
    await warmPool.close();
    await sandboxes.close();
    await egress.close();
    egressLog.close();
    outputLog.close();
    await layers.settled();
    await deps.volumes.stop();
    await Promise.all([pools.plain.close(), pools.withUserNamespace.close(), deps.areas.stop()]);
    await reservation?.release();
    lock.release();
  }
  let closing: Promise<void> | undefined;
  return {
    service,
    buildHost,
    dial: (target, signal) => dialSandbox(sandboxes, target, signal),
    listen: ({ host, port, secret }) => listenNodeServer({ service, sandboxes, secret, logger }, host, port),
    close: () => (closing ??= close()),
  };
}

/** Failure policy: a resource that cannot be released now does not keep the node from serving the sandboxes that run. */
async function recover(
  deps: HostDeps,
  { images, journal }: { images: ImageStore; journal: readonly JournalEntry[] },
  logger: Logger,
): Promise<Adopted> {
  const onFailure = (error: unknown, what: string) =>
    logger.error({ err: asError(error), what }, "leftovers not removed; the next start tries again");
  const adopted = await adoptSandboxes(deps, { images, journal }, { logger, onFailure });
  const keep = allOf(adopted);
  await removeRemains(deps, keep, { logger, onFailure });
  await removeStrayAreas(deps.areas, images, { keep, hasSetAside: hasSetAside(deps.paths), onFailure });
  void emptyTrash(deps.paths, logger);
  return adopted;
}

function allOf({ running, interrupted, restored }: Adopted): SandboxRecord[] {
  return [...running, ...interrupted, ...restored];
}

async function openNetwork(
  { config, paths, names, policy }: HostDeps,
  about: { images: ImageStore; adopted: readonly SandboxRecord[]; proxies: SiteProxies; logger: Logger },
): Promise<{ readonly pools: ContainersOptions["pools"]; readonly reservation: PoolReservation | undefined }> {
  const { images, adopted, proxies, logger } = about;
  const isInUse = adopted.length > 0 || images.list().some(({ kind }) => kind !== "template");
  const { plan: addresses, reservation } = await chooseAddressPool({
    file: paths.network,
    wanted: config.networkPool,
    instance: config.instance,
    ipv6: config.ipv6,
    isInUse,
  });
  const known = await proxies.look();
  await policy.adopt({
    pool: addresses.pool,
    ipv6: addresses.ipv6,
    resolvers: config.resolvers,
    privateNetworks: config.allowPrivate ?? [],
    proxies: known,
    maxConnections: config.maxConnections,
    sandboxes: adopted,
  });
  proxies.follow(known, (changed) => policy.setProxies(changed));
  if (config.runtimes.some((runtime) => runtime.capabilities.userNamespace)) raiseHostLimits();
  limitProcesses(`/skerry-${config.instance}`, (error) =>
    logger.warn({ err: error }, "the number of processes of all sandboxes together is not limited"),
  );
  const keptNumbers = images.list().flatMap((image) => image.local.owner?.slotNumber ?? []);
  const taken = new Set([...adopted.map((record) => record.slot.number), ...keptNumbers]);
  const pool = (withUserNamespace: boolean) => {
    const isUsed = config.runtimes[0]?.capabilities.userNamespace === withUserNamespace;
    return new SlotPool({
      names,
      policy,
      addresses,
      usernsDir: paths.userns,
      withUserNamespace,
      ready: isUsed ? config.readySlots : 0,
      taken,
      logger,
    });
  };
  const pools = { plain: pool(false), withUserNamespace: pool(true) };
  await Promise.all([pools.plain.start(), pools.withUserNamespace.start()]);
  return { pools, reservation };
}

interface AssembleOptions extends Pick<ContainersOptions, "images" | "pools" | "logger"> {
  readonly adopted: Adopted;
  readonly egressLog: EgressLog;
  readonly outputLog: OutputLog;
}

interface Assembled {
  readonly containers: Containers;
  readonly sandboxes: Sandboxes;
  readonly warmPool: WarmPool;
  readonly layers: UnusedLayers;
  readonly buildHost: NodeBuildHost;
  readonly builds: Builds;
  readonly gate: StartGate;
}

async function assemble(deps: HostDeps, { images, pools, adopted, egressLog, outputLog, logger }: AssembleOptions): Promise<Assembled> {
  const { config, policy } = deps;
  const cores = availableParallelism();
  const gate = new StartGate({ limit: { min: cores, max: 8 * cores }, maxWaiting: MAX_WAITING_STARTS, maxWaitMs: MAX_WAIT_MS });
  const containers = new Containers({ deps, images, pools, egressLog, outputLog, logger, emptyTrashAfterMs: config.emptyTrashAfterMs });
  findUsers(deps.volumes, { containers, images });
  const uses = new ImageUses();
  const starter = new Starter({ deps, images, containers, pools, uses, logger });
  const writer = new ImageWriter({ deps, images, containers, logger });
  const keeper = new Keeper({ deps, images, containers, logger });
  const snapshots = new Snapshots({ deps, images, containers, writer, uses, keeper, logger });
  const templateImages = new TemplateImages({
    settleMs: config.pool.settleMs,
    containers,
    images,
    starter,
    writer,
    fingerprintOf: (name) => runtimeOf(config, name).fingerprint + siteKey(config),
    keepsMemory: (name) => runtimeOf(config, name).capabilities.checkpoint,
    logger,
  });
  const { current: agent } = config.agents;
  const warmPool = new WarmPool({ ...config.pool, config, policy, containers, images, starter, templateImages, gate, agent, logger });
  const sandboxes = new Sandboxes({ deps, containers, images, starter, writer, snapshots, keeper, uses, pool: warmPool, gate, logger });
  for (const record of adopted.running) sandboxes.bringUp(containers.add(record));
  for (const record of adopted.interrupted) sandboxes.continueSnapshot(containers.add(record));
  for (const record of adopted.restored) sandboxes.continueResume(containers.add(record));
  // Sandboxes whose resume was complete, except for the removal of their image.
  for (const { imageId = "" } of adopted.running) if (images.get(imageId)?.kind === "pause") await containers.discardImage(imageId);
  sandboxes.watch();
  warmPool.start();
  const buildHost = new NodeBuildHost({ deps, containers, images, uses, starter, templateImages, gate, logger });
  const builder = await openBuilder(config, buildHost, logger);
  const builds = new Builds({ layers: config.layers, builder, most: config.builds?.most ?? 0, logger });
  const cachedLayers = () => builder?.cache.layers() ?? new Set<string>();
  const layers = new UnusedLayers({ config, paths: deps.paths, containers, images, pool: warmPool, cachedLayers, logger });
  layers.sweep();
  return { containers, sandboxes, warmPool, layers, buildHost, builds, gate };
}
