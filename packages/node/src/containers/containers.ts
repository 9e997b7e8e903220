// The containers that run on this host: those of sandboxes, and the ready ones in the pool. This module starts, releases and finds
// containers. What that means for a sandbox is decided in the folder `sandboxes`.

import { randomBytes } from "node:crypto";
import { asError, errnoOf, isOutOfSpace, type Logger, PlatformError } from "@skerry/base";
import { setMemoryLimit } from "@skerry/runtime";
import { crashPoint } from "../crash-points.ts";
import type { EgressLog } from "../egress-log/egress-log.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import { ExtraMemory } from "../limits/extra-memory.ts";
import { memoryPlan } from "../limits/memory-plan.ts";
import { SandboxGuard } from "../limits/sandbox-guard.ts";
import type { SlotPool } from "../network/slot-pool.privileged.ts";
import type { OutputLog } from "../output-log/output-log.ts";
import { RecordFlush } from "../records/record-flush.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { Connections } from "./connections.ts";
import { type HostDeps, release, runtimeOf, type StartRequest, takeAndStart } from "./host.privileged.ts";
import { areaIdsOf, hasFolder, refOf, removeRecord, writeRecord } from "./journal.privileged.ts";
import { processStartTime } from "./process-identity.ts";
import { emptyTrash } from "./recover.privileged.ts";
import { type UnaskedEnd, UnaskedEnds } from "./unasked-ends.ts";

/** Delay before the area of a paused sandbox is unmounted: callers often resume a sandbox soon after its pause. */
const CLOSE_AFTER_MS = 5_000;
/** Delay before released files are deleted, so that the deletion does not slow down the answer to the caller. */
const DEFAULT_EMPTY_TRASH_AFTER_MS = 1_000;

export interface LiveContainer {
  record: SandboxRecord;
  readonly connections: Connections;
  /** Aborted at the end of the container: nothing else tells the node while it waits for a command. */
  readonly ended: AbortController;
  /** Set for a container that runs a step of a build. It belongs to no sandbox. */
  readonly build: BuildUse | undefined;
  /** Settles when the container answers again. It stands still while an image of it is written. */
  standstill: Promise<void> | undefined;
  /** Set from the moment in which its start command is run: see sandboxes/start-command.ts. */
  startCommand: Promise<void> | undefined;
  /** Set while the container is being released: further callers wait for the same release. */
  ending: Promise<void> | undefined;
  /** False after the network slot was released. Another sandbox may have the slot, so a repeated release must not touch it. */
  hasSlot: boolean;
  /** Why the container must end although its processes still run. */
  fatal: UnaskedEnd | undefined;
}

export interface BuildUse {
  /** The node ended its processes, and is making a layer of its area. Only the commit releases it then. */
  isCommitting: boolean;
  /** Why the node ended the container, for the caller. */
  endReason: string | undefined;
}

/** Runs work during which the container does not answer. Callers that need the container wait until the work succeeds or fails. */
export async function whileStandingStill<T>(live: LiveContainer, work: () => Promise<T>): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<void>();
  live.standstill = promise;
  try {
    return await work();
  } finally {
    live.standstill = undefined;
    resolve();
  }
}

export interface ContainersOptions {
  readonly deps: HostDeps;
  readonly images: ImageStore;
  readonly pools: { readonly plain: SlotPool; readonly withUserNamespace: SlotPool };
  /** Is told whose containers are at the addresses of slots. */
  readonly egressLog: EgressLog;
  readonly outputLog: OutputLog;
  readonly logger: Logger;
  readonly emptyTrashAfterMs: number | undefined;
}

export class Containers {
  readonly #options: ContainersOptions;
  readonly #live = new Map<string, LiveContainer>();
  readonly unaskedEnds = new UnaskedEnds();
  readonly extraMemory: ExtraMemory;
  readonly #guard: SandboxGuard;
  readonly #flush: RecordFlush;
  #emptying: NodeJS.Timeout | undefined;
  #cleaning: Promise<void> = Promise.resolve();

  constructor(options: ContainersOptions) {
    this.#options = options;
    this.#guard = new SandboxGuard({ logger: options.logger, tell: (id, text) => options.outputLog.tell(id, text) });
    this.#flush = new RecordFlush(options.deps.paths, options.logger);
    this.extraMemory = new ExtraMemory(options.logger);
  }

  newId(): string {
    return `c${randomBytes(10).toString("hex").slice(0, 20)}`;
  }

  /** Whether no container has this name, and nothing is left of one that had it. */
  isNameFree(id: string): boolean {
    return !this.#live.has(id) && !hasFolder(this.#options.deps.paths, id);
  }

  all(): LiveContainer[] {
    return [...this.#live.values()];
  }

  get(containerId: string): LiveContainer | undefined {
    return this.#live.get(containerId);
  }

  /**
   * The container of a sandbox. It searches all containers, of which there are hundreds: a second map would have to be kept consistent. The
   * empty id is no sandbox: ready containers have it, and those whose sandbox was paused.
   */
  ofSandbox(sandboxId: string): LiveContainer | undefined {
    if (sandboxId === "") return undefined;
    return this.#live.values().find(({ record }) => record.sandboxId === sandboxId);
  }

  /** Registers a container without starting it. From then on its areas are in use. */
  add(record: SandboxRecord, { isBuild = false } = {}): LiveContainer {
    const live: LiveContainer = {
      record,
      connections: new Connections(),
      ended: new AbortController(),
      build: isBuild ? { isCommitting: false, endReason: undefined } : undefined,
      standstill: undefined,
      startCommand: undefined,
      ending: undefined,
      hasSlot: true,
      fatal: undefined,
    };
    this.#live.set(record.containerId, live);
    this.#options.egressLog.arrive(record.slot, record.sandboxId);
    this.#options.outputLog.follow(live);
    this.#guardLimits(live);
    return live;
  }

  /**
   * Changes the record of a container, in memory and in its file. A container without a folder has its record in memory alone. When the
   * disk is full, a container that is to be released loses its record: it is released without one, which frees space.
   */
  set(record: SandboxRecord): void {
    const live = this.#live.get(record.containerId);
    const before = live?.record;
    if (live) live.record = record;
    if (record.state === "running") this.unaskedEnds.delete(record.sandboxId);
    this.#options.egressLog.own(record.slot, record.sandboxId);
    if (live) {
      this.#guardLimits(live);
      this.#options.outputLog.follow(live);
    }
    try {
      writeRecord(this.#options.deps.paths, record);
    } catch (error) {
      if (isOutOfSpace(error) && record.state === "killing") removeRecord(this.#options.deps.paths, record.containerId);
      else if (errnoOf(error) !== "ENOENT") throw error;
    }
    if (record.state === "running" && before?.state !== "running") this.#flush.add(record.containerId);
  }

  /** Resolves with the record when the first process of the container runs. On failure the caller must release the container. */
  async start(request: StartRequest): Promise<SandboxRecord & Required<Pick<SandboxRecord, "process">>> {
    const { record } = request;
    if (!this.#live.has(record.containerId)) this.add(record);
    const { pid, binary } = await takeAndStart(this.#options.deps, request);
    const startTime = processStartTime(pid);
    if (startTime === undefined) throw new PlatformError("runtime_failed", `${record.containerId} ended as soon as it started`);
    const started = { ...record, binary, process: { pid, startTime } };
    this.set(started);
    crashPoint("start.recorded-started");
    return started;
  }

  /** Ends a container, and releases everything that no image and no other container uses. */
  giveBack(record: SandboxRecord): Promise<void> {
    const live = this.#live.get(record.containerId);
    if (!live) return Promise.resolve();
    live.ending ??= this.#giveBack(live, record).finally(() => {
      live.ending = undefined;
    });
    return live.ending;
  }

  async #giveBack(live: LiveContainer, record: SandboxRecord): Promise<void> {
    const { deps } = this.#options;
    this.set({ ...record, state: "killing" });
    crashPoint("release.recorded");
    this.#guard.unwatch(record.containerId);
    live.connections.reset();
    live.ended.abort();
    await release(deps, record.containerId, record.runtime);
    await this.#releaseSlot(live, record);
    crashPoint("release.slot-released");
    await this.collectAreas(areaIdsOf(record), record.containerId);
    crashPoint("release.collected");
    this.#live.delete(record.containerId);
    this.emptyTrash();
  }

  async #releaseSlot(live: LiveContainer, record: SandboxRecord): Promise<void> {
    if (!live.hasSlot) return;
    live.hasSlot = false;
    await this.poolFor(record).release(record.slot, {
      // The files of a paused sandbox may belong to the user namespace of this slot.
      keepsNumber: this.#options.images.list().some(({ local }) => local.area === record.area && local.owner !== undefined),
    });
  }

  /** Replaces a container by its successor, which keeps the connections. */
  rekey(live: LiveContainer, successor: SandboxRecord): void {
    this.#guard.unwatch(live.record.containerId);
    this.#live.delete(live.record.containerId);
    live.record = successor;
    this.#live.set(successor.containerId, live);
  }

  /** Why the container ended by itself, or is about to. */
  unaskedEndOf({ record, fatal }: LiveContainer): UnaskedEnd {
    return fatal ?? (this.#guard.isOutOfMemory(record.containerId) ? "memory" : "exited");
  }

  /** Raises the memory limit of a container that stands still. The limit returns to its normal value when the container runs again. */
  raiseLimits(containerId: string, bytes: number): void {
    const live = this.#live.get(containerId);
    if (!live) return;
    const { record } = live;
    const extraMemoryBytes = (record.extraMemoryBytes ?? 0) + bytes;
    // Recorded first, so that the limit is lowered again after any failure.
    this.set({ ...record, extraMemoryBytes });
    setMemoryLimit(record.cgroupPath, memoryPlan(record.size.memoryMb, record.runtime).hostBytes + extraMemoryBytes);
  }

  #takeBackExtra(live: LiveContainer): void {
    const { containerId, cgroupPath, size, runtime } = live.record;
    const ofThis = () => (this.#live.get(containerId) === live && live.record.state === "running" ? live.record : undefined);
    this.extraMemory.takeBack({
      key: containerId,
      cgroupPath,
      plan: memoryPlan(size.memoryMb, runtime),
      extraBytes: () => ofThis()?.extraMemoryBytes ?? 0,
      reduce: () => runtimeOf(this.#options.deps.config, runtime).reduceMemory(refOf(live.record)),
      keep: (extraMemoryBytes) => {
        const { extraMemoryBytes: _before, ...record } = live.record;
        this.set(extraMemoryBytes > 0 ? { ...record, extraMemoryBytes } : record);
      },
    });
  }

  #guardLimits(live: LiveContainer): void {
    const { containerId, runtime, cgroupPath, slot, size, state, process, extraMemoryBytes } = live.record;
    if (!process || (state !== "running" && state !== "pooled")) return;
    if (extraMemoryBytes !== undefined && state === "running") this.#takeBackExtra(live);
    if (this.#guard.watches(containerId)) return;
    this.#guard.watch({
      key: containerId,
      runtime,
      pid: process.pid,
      cgroupPath,
      address: slot.addresses.guest,
      limitBytes: () => {
        // While the container stands still, no process of it can be killed: only the kernel's limit applies.
        if (live.record.state !== "running" && live.record.state !== "pooled") return Number.POSITIVE_INFINITY;
        return memoryPlan(size.memoryMb, runtime).guardBytes + (live.record.extraMemoryBytes ?? 0);
      },
      identity: () => ({ sandboxId: live.record.sandboxId, accessToken: live.record.identity.accessToken }),
      // The end watch releases the container.
      onFatal: () => {
        live.fatal = "memory";
      },
    });
  }

  /**
   * Deletes those of the areas that no image and no other container than `leaving` refers to. Unmounts those that only images refer to.
   */
  async collectAreas(candidates: readonly string[], leaving?: string): Promise<void> {
    const { images, deps } = this.#options;
    const staying = this.all().filter(({ record }) => record.containerId !== leaving);
    const running = new Set(staying.flatMap(({ record }) => areaIdsOf(record)));
    const kept = new Set(images.list().flatMap(({ local }) => areaIdsOf(local)));
    for (const area of new Set(candidates)) {
      if (running.has(area)) continue;
      if (kept.has(area)) this.#closeLater(area);
      else await deps.areas.destroy(area);
    }
  }

  /**
   * Unmounts an area later, if only images refer to it then. Callers often resume a sandbox soon after its pause, and an unmount waits until
   * all data is on the disk.
   */
  #closeLater(area: string): void {
    const timer = setTimeout(() => {
      const isUsed = this.all().some(({ record }) => areaIdsOf(record).includes(area));
      if (isUsed) return;
      this.#options.deps.areas.close(area).catch((error: unknown) => {
        this.#options.logger.warn({ area, err: asError(error) }, "unmounting the disk area of a paused sandbox failed");
      });
    }, CLOSE_AFTER_MS);
    timer.unref();
  }

  /** Deletes an image, and everything that only this image used. */
  async discardImage(imageId: string): Promise<void> {
    const { images } = this.#options;
    const image = images.get(imageId);
    images.discard(imageId);
    crashPoint("discard.moved");
    if (image) {
      const { owner } = image.local;
      if (owner) this.releaseNumber(owner.slotNumber);
      await this.collectAreas(areaIdsOf(image.local));
      crashPoint("discard.collected");
    }
    this.emptyTrash();
  }

  /** Releases the slot number that an image reserved, unless its sandbox uses it again. */
  releaseNumber(number: number): void {
    if (this.all().some(({ record }) => record.slot.number === number)) return;
    this.#options.pools.withUserNamespace.releaseNumber(number);
  }

  poolFor(record: Pick<SandboxRecord, "slot">): SlotPool {
    return record.slot.userNamespace ? this.#options.pools.withUserNamespace : this.#options.pools.plain;
  }

  /** Deletes released files after a delay. */
  emptyTrash(): void {
    const delayMs = this.#options.emptyTrashAfterMs ?? DEFAULT_EMPTY_TRASH_AFTER_MS;
    this.#emptying ??= setTimeout(() => this.#emptyTrashNow(), delayMs).unref();
  }

  #emptyTrashNow(): void {
    const { deps, logger } = this.#options;
    clearTimeout(this.#emptying);
    this.#emptying = undefined;
    this.#cleaning = this.#cleaning.then(() => emptyTrash(deps.paths, logger));
  }

  /** Releases a container without an error for the caller. After a failure the end watch tries again. */
  async tryToGiveBack(record: SandboxRecord): Promise<void> {
    try {
      await this.giveBack(record);
    } catch (error) {
      const facts = { sandbox_id: record.sandboxId, container_id: record.containerId, err: asError(error) };
      this.#options.logger.error(facts, "releasing a sandbox failed; will be tried again");
    }
  }

  async close(): Promise<void> {
    this.#guard.close();
    this.extraMemory.close();
    await Promise.allSettled(this.all().map(({ ending }) => ending));
    if (this.#emptying) this.#emptyTrashNow();
    await Promise.all([this.#cleaning, this.#flush.done()]);
  }
}
