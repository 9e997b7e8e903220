// What runs on this machine, whosever it is: sandboxes, and the ones in the pool that are nobody's yet. Here a container is
// started, given back and found again; what that means for a sandbox is decided above.

import { randomBytes } from "node:crypto";
import { asError, errnoOf, isOutOfSpace, type Logger, PlatformError, type RelaySocket } from "@skerry/base";
import { setMemoryLimit } from "@skerry/runtime";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import { ExtraMemory } from "../limits/extra-memory.ts";
import { memoryPlan } from "../limits/memory-plan.ts";
import { SandboxGuard } from "../limits/sandbox-guard.ts";
import type { SlotPool } from "../network/slot-pool.privileged.ts";
import { RecordFlush } from "../records/record-flush.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { type HostDeps, release, runtimeOf, type StartRequest, takeAndStart } from "./host.privileged.ts";
import { areaIdsOf, hasFolder, refOf, removeRecord, writeRecord } from "./journal.privileged.ts";
import { processStartTime } from "./process-identity.ts";
import { emptyTrash } from "./recover.privileged.ts";
import { type UnaskedEnd, UnaskedEnds } from "./unasked-ends.ts";

const CLOSE_AFTER_MS = 5_000;
const DEFAULT_EMPTY_TRASH_AFTER_MS = 1_000;

export interface LiveContainer {
  record: SandboxRecord;
  /** Connections that this node has open into it: nothing else would tell their peers that it is gone. */
  readonly connections: Set<RelaySocket>;
  /** Settles when it can be talked to again: it stands still while an image of it is written. */
  standstill: Promise<void> | undefined;
  /** While it is being given back: whoever wants that too waits for the same. */
  ending: Promise<void> | undefined;
  /** Somebody else may have its network slot by now: whoever tries again to give the rest back leaves the slot alone. */
  hasSlot: boolean;
  /** It can't go on, although its processes still run. */
  fatal: UnaskedEnd | undefined;
}

/** Does something during which nobody can talk to the sandbox: whoever comes waits until it is over, however it ends. */
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
    this.#guard = new SandboxGuard(options.logger);
    this.#flush = new RecordFlush(options.deps.paths, options.logger);
    this.extraMemory = new ExtraMemory(options.logger);
  }

  newId(): string {
    return `c${randomBytes(10).toString("hex").slice(0, 20)}`;
  }

  /** Whether a container may have this name: no other one has it, and nothing is left of one that had it. */
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
   * The container of a sandbox. A search of all: there are hundreds, and there is no second map to keep true. The empty id names no
   * sandbox: containers have it that are ready for one, or that a pause has left.
   */
  ofSandbox(sandboxId: string): LiveContainer | undefined {
    if (sandboxId === "") return undefined;
    return this.#live.values().find(({ record }) => record.sandboxId === sandboxId);
  }

  /** Takes one in without starting it. From here on its areas are in use. */
  add(record: SandboxRecord): LiveContainer {
    const live: LiveContainer = {
      record,
      connections: new Set(),
      standstill: undefined,
      ending: undefined,
      hasSlot: true,
      fatal: undefined,
    };
    this.#live.set(record.containerId, live);
    this.#guardLimits(live);
    return live;
  }

  /**
   * A record whose folder is not there yet or no more is kept in memory alone. One that is to be given back is so without a record, too:
   * that is what it gets on a full disk, where giving back makes the room.
   */
  set(record: SandboxRecord): void {
    const live = this.#live.get(record.containerId);
    const before = live?.record;
    if (live) live.record = record;
    if (record.state === "running") this.unaskedEnds.delete(record.sandboxId);
    if (live) this.#guardLimits(live);
    try {
      writeRecord(this.#options.deps.paths, record);
    } catch (error) {
      if (isOutOfSpace(error) && record.state === "killing") removeRecord(this.#options.deps.paths, record.containerId);
      else if (errnoOf(error) !== "ENOENT") throw error;
    }
    if (record.state === "running" && before?.state !== "running") this.#flush.add(record.containerId);
  }

  /** Answers when its first process runs, with its record. On failure the caller gives it back. */
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

  /** Ends it and gives everything back that no image and nobody else has a share in. */
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
    for (const socket of live.connections) socket.resetAndDestroy();
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
      // The files of a paused sandbox may belong to the user namespace of its slot.
      keepsNumber: this.#options.images.list().some(({ local }) => local.area === record.area && local.owner !== undefined),
    });
  }

  /** One container takes the place of another: its connections stay. */
  rekey(live: LiveContainer, successor: SandboxRecord): void {
    this.#guard.unwatch(live.record.containerId);
    this.#live.delete(live.record.containerId);
    live.record = successor;
    this.#live.set(successor.containerId, live);
  }

  /** Why it has ended by itself, or is about to. */
  unaskedEndOf({ record, fatal }: LiveContainer): UnaskedEnd {
    return fatal ?? (this.#guard.isOutOfMemory(record.containerId) ? "memory" : "exited");
  }

  /** Lets one that stands still have so much more memory than its limits. They go back to what they were when it runs again. */
  raiseLimits(containerId: string, bytes: number): void {
    const live = this.#live.get(containerId);
    if (!live) return;
    const { record } = live;
    const extraMemoryBytes = (record.extraMemoryBytes ?? 0) + bytes;
    // First: whatever happens from here on, somebody lowers it again.
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
        // While it stands still, none of its processes can be ended: the kernel's limit holds alone.
        if (live.record.state !== "running" && live.record.state !== "pooled") return Number.POSITIVE_INFINITY;
        return memoryPlan(size.memoryMb, runtime).guardBytes + (live.record.extraMemoryBytes ?? 0);
      },
      identity: () => ({ sandboxId: live.record.sandboxId, accessToken: live.record.identity.accessToken }),
      // Whoever watches for what has ended takes it from here.
      onFatal: () => {
        live.fatal = "memory";
      },
    });
  }

  /**
   * Of these areas, those that no container (but the one that leaves) and no image refers to any more are deleted; those that
   * only images do are closed.
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
   * Whoever pauses a sandbox often wants it back at once, and closing waits for everything that it wrote to be on the disk:
   * so an area that only images refer to is closed some time later, if that is still so.
   */
  #closeLater(area: string): void {
    const timer = setTimeout(() => {
      const isUsed = this.all().some(({ record }) => areaIdsOf(record).includes(area));
      if (isUsed) return;
      this.#options.deps.areas.close(area).catch((error: unknown) => {
        this.#options.logger.warn({ area, err: asError(error) }, "the disk area of a paused sandbox stays mounted");
      });
    }, CLOSE_AFTER_MS);
    timer.unref();
  }

  /** Deletes an image and what only it needed. */
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

  /** Gives up the slot number that an image kept, unless its sandbox has it again. */
  releaseNumber(number: number): void {
    if (this.all().some(({ record }) => record.slot.number === number)) return;
    this.#options.pools.withUserNamespace.releaseNumber(number);
  }

  poolFor(record: Pick<SandboxRecord, "slot">): SlotPool {
    return record.slot.userNamespace ? this.#options.pools.withUserNamespace : this.#options.pools.plain;
  }

  /** In a moment: deleting takes a process, and disk and processors from whoever has just been answered. */
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

  /** Gives back without an error for the caller: what is left is tried again by whoever watches. */
  async tryToGiveBack(record: SandboxRecord): Promise<void> {
    try {
      await this.giveBack(record);
    } catch (error) {
      const facts = { sandbox_id: record.sandboxId, container_id: record.containerId, err: asError(error) };
      this.#options.logger.error(facts, "sandbox not released, will be tried again");
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
