// Writes a running sandbox to an image. The sandbox is frozen from the beginning; after a failure it continues as before.

import { asError, isOutOfSpace, type Logger, PlatformError, type PlatformErrorCode } from "@skerry/base";
import { notSavable, type Runtime, type SavingNeeds } from "@skerry/runtime";
import type { Containers } from "../containers/containers.ts";
import { type HostDeps, runtimeOf } from "../containers/host.privileged.ts";
import { refOf } from "../containers/journal.privileged.ts";
import { linkUpArea } from "../containers/root.privileged.ts";
import { crashPoint } from "../crash-points.ts";
import { readDiskSpace } from "../disk/disk-space.privileged.ts";
import { bytesToRestore, bytesToSaveHeap } from "../limits/extra-memory.ts";
import type { ImageKind, ImageRecord } from "../records/image-record.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { ImageStore } from "./image-store.privileged.ts";

/** Failures whose own public message tells the caller what is not possible. */
const REFUSALS: readonly PlatformErrorCode[] = ["state_not_savable", "disk_space_unavailable", "links_not_kept"];

export interface ImageRequest {
  readonly record: SandboxRecord;
  readonly imageId: string;
  readonly kind: ImageKind;
  /** A function is called when the sandbox is frozen, and uses no more space. */
  readonly withMemory: boolean | (() => boolean);
  readonly agentUnresponsive: boolean;
  /** The caller wants the files alone: what boots from the image does not run the start command of the template. */
  readonly filesOnly?: boolean;
  /** Why the node pauses the sandbox without a request. */
  readonly kept?: ImageRecord["kept"];
  /** Replaces the sandbox's frozen areas: a shorter chain with the same content. */
  readonly frozenAreas?: readonly string[];
  /** Creates the area that the image refers to, if it can't be the sandbox's own. Returns its id. */
  readonly layerOf?: () => Promise<string>;
}

export class ImageWriter {
  readonly #deps: HostDeps;
  readonly #images: ImageStore;
  readonly #containers: Containers;
  readonly #logger: Logger;

  constructor(options: { deps: HostDeps; images: ImageStore; containers: Containers; logger: Logger }) {
    this.#deps = options.deps;
    this.#images = options.images;
    this.#containers = options.containers;
    this.#logger = options.logger;
  }

  /**
   * Resolves when the image is complete on disk. The sandbox is then still frozen, and the image refers to its area. After a failure
   * there is no image, and the sandbox runs.
   */
  async write(request: ImageRequest): Promise<ImageRecord> {
    const { imageId, kind } = request;
    const { memoryLost: _former, ...record } = request.record;
    const state = kind === "pause" ? "pausing" : "snapshotting";
    // First, because it throws if the image exists already; nothing has changed then.
    const dir = this.#images.begin(imageId);
    crashPoint("write.folder-made");
    const runtime = runtimeOf(this.#deps.config, record.runtime);
    const target = refOf(record);
    try {
      this.#containers.set({ ...record, state, imageId });
      crashPoint("write.recorded");
      await runtime.freeze(target);
      crashPoint("write.frozen");
      const withMemory = typeof request.withMemory === "function" ? request.withMemory() : request.withMemory;
      const memory = withMemory ? await this.#writeMemory(runtime, record, dir) : undefined;
      // The area, or a copy of it, becomes a layer of other sandboxes.
      if (kind !== "pause") await linkUpArea(this.#deps, record);
      const area = (await request.layerOf?.()) ?? record.area;
      // The memory is flushed already. After this, the image survives a loss of power and a full disk.
      await this.#deps.areas.sync(area);
      const image = imageOf(request, memory, area);
      crashPoint("write.layer-copied");
      this.#images.commit(image);
      crashPoint("write.committed");
      return image;
    } catch (error) {
      this.#logger.warn({ sandbox_id: record.sandboxId, image_id: imageId, err: asError(error) }, "writing an image of a sandbox failed");
      this.#images.discard(imageId);
      this.#containers.emptyTrash();
      await this.goOn(record);
      if (error instanceof PlatformError && REFUSALS.includes(error.code)) throw error;
      throw new PlatformError("image_not_written", `sandbox ${record.sandboxId} was not written: ${asError(error).message}`, {
        publicMessage: "the sandbox could not be written to disk; it keeps running",
        cause: error,
      });
    }
  }

  /** Lets a frozen sandbox run again. */
  async goOn(record: SandboxRecord): Promise<void> {
    const runtime = runtimeOf(this.#deps.config, record.runtime);
    const target = refOf(record);
    try {
      await runtime.thaw(target);
      crashPoint("write.thawed");
    } catch (error) {
      // It was never frozen, or its runtime has ended; in that case the watch finds it.
      this.#logger.warn({ sandbox_id: record.sandboxId, err: asError(error) }, "thawing a sandbox failed");
    }
    const { imageId: _imageId, successorArea: _successorArea, ...rest } = this.#containers.get(record.containerId)?.record ?? record;
    try {
      this.#containers.set({ ...rest, state: "running" });
    } catch (error) {
      // The former record names an incomplete image. The next start reads that as a sandbox that runs.
      if (!isOutOfSpace(error)) throw error;
      this.#logger.warn({ sandbox_id: record.sandboxId, err: asError(error) }, "no disk space to record that a sandbox runs again");
    }
  }

  async #writeMemory(runtime: Runtime, record: SandboxRecord, dir: string) {
    const { bundle, root } = this.#deps.paths.container(record.containerId);
    const target = { ...refOf(record), bundleDir: bundle };
    const needs = await runtime.survey({
      pid: record.process?.pid ?? 0,
      rootDir: root,
      volumes: this.#deps.volumes.plansOf(record.volumes),
    });
    if (needs.diskBytes > readDiskSpace(root).freeBytes) throw notSavable(`${needs.cause}, for which its disk has no room`);
    const written = await this.#withExtraMemory(record, needs, () => runtime.checkpoint(target, dir));
    crashPoint("write.checkpointed");
    const extraMemoryBytes = bytesToRestore(record.cgroupPath);
    const memory = await this.#images.seal(extraMemoryBytes > 0 ? { ...written, extraMemoryBytes } : written);
    crashPoint("write.sealed");
    return memory;
  }

  /** Lends memory to the checkpoint. gVisor's heap may need all the memory that the host can spare, but mostly needs a fraction. */
  async #withExtraMemory<T>(record: SandboxRecord, needs: SavingNeeds, work: () => Promise<T>): Promise<T> {
    const { extraMemory } = this.#containers;
    const forHeap = Math.min(bytesToSaveHeap(record.cgroupPath), Math.max(0, extraMemory.spareBytes() - needs.memoryBytes));
    const bytes = needs.memoryBytes + forHeap;
    if (bytes === 0) return work();
    try {
      return await extraMemory.lend(bytes, () => {
        this.#containers.raiseLimits(record.containerId, bytes);
        return work();
      });
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== "capacity_unavailable") throw error;
      throw notSavable(`${needs.cause}, for which the host does not have enough memory now`);
    }
  }
}

/** The record of an image of a sandbox, whose topmost area is `area`. */
export function imageOf(request: ImageRequest, memory: ImageRecord["memory"], area: string): ImageRecord {
  const { record, imageId, kind, agentUnresponsive, kept } = request;
  const { runtime, templateId, buildId, size, layers, agent, start, volumes, options, identity, slot } = record;
  const frozenAreas = request.frozenAreas ?? record.frozenAreas;
  return {
    version: 2,
    imageId,
    kind,
    runtime,
    templateId,
    buildId,
    size,
    layers,
    agent,
    options,
    identity,
    agentUnresponsive,
    createdAtMs: Date.now(),
    ...(memory ? { memory } : {}),
    ...(start && request.filesOnly !== true ? { start } : {}),
    ...(volumes ? { volumes } : {}),
    ...(kept === undefined ? {} : { kept }),
    local:
      kind === "pause"
        ? { frozenAreas, area, ...(slot.userNamespace ? { owner: { slotNumber: slot.number, idBase: slot.userNamespace.idBase } } : {}) }
        : { frozenAreas: [...frozenAreas, area] },
  };
}
