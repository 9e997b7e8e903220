// Writing a running sandbox to an image. It stands still from the beginning; after a failure it goes on as before.

import { asError, type Logger, PlatformError } from "@skerry/base";
import type { Runtime } from "@skerry/runtime";
import { crashPoint } from "../crash-points.ts";
import type { ImageKind, ImageRecord } from "../images/image.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { Containers } from "./containers.ts";
import { type HostDeps, runtimeOf } from "./host.privileged.ts";
import { refOf, type SandboxRecord } from "./journal.privileged.ts";

export interface ImageRequest {
  readonly record: SandboxRecord;
  readonly imageId: string;
  readonly kind: ImageKind;
  readonly withMemory: boolean;
  readonly agentUnresponsive: boolean;
  /** Frozen areas that mean the same as the sandbox's own, where those are too many. */
  readonly frozenAreas?: readonly string[];
  /** Makes the layer of the image that stands for the sandbox's area, where the area itself can't be it. */
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
   * Answers when the image is complete on disk; the sandbox stands still then, and its area is the image's. On failure there
   * is no image and the sandbox runs.
   */
  async write(request: ImageRequest): Promise<ImageRecord> {
    const { record, imageId, kind } = request;
    const state = kind === "pause" ? "pausing" : "snapshotting";
    // First: where an image of that id exists already, nothing has changed and that one stays.
    const dir = this.#images.begin(imageId);
    crashPoint("write.folder-made");
    this.#containers.set({ ...record, state, imageId });
    crashPoint("write.recorded");
    const runtime = runtimeOf(this.#deps.config, record.runtime);
    const target = refOf(record);
    try {
      await runtime.freeze(target);
      crashPoint("write.frozen");
      const memory = request.withMemory ? await this.#writeMemory(runtime, record, dir) : undefined;
      const image = imageOf(request, memory, (await request.layerOf?.()) ?? record.area);
      crashPoint("write.layer-copied");
      this.#images.commit(image);
      crashPoint("write.committed");
      return image;
    } catch (error) {
      this.#images.discard(imageId);
      this.#containers.emptyTrash();
      await this.goOn(record);
      throw new PlatformError("image_not_written", `sandbox ${record.sandboxId} was not written: ${asError(error).message}`, {
        publicMessage: "the sandbox could not be written to disk; it runs on as before",
        cause: error,
      });
    }
  }

  /** Lets a sandbox run on that stands still. */
  async goOn(record: SandboxRecord): Promise<void> {
    const runtime = runtimeOf(this.#deps.config, record.runtime);
    const target = refOf(record);
    try {
      await runtime.thaw(target);
      crashPoint("write.thawed");
    } catch (error) {
      // It was never frozen, or its runtime is gone: then the watch finds it ended.
      this.#logger.warn({ sandbox_id: record.sandboxId, err: asError(error) }, "sandbox could not be thawed");
    }
    const { imageId: _imageId, ...rest } = record;
    this.#containers.set({ ...rest, state: "running" });
  }

  async #writeMemory(runtime: Runtime, record: SandboxRecord, dir: string) {
    const { bundle } = this.#deps.paths.container(record.containerId);
    const target = { ...refOf(record), bundleDir: bundle };
    const written = await runtime.checkpoint(target, dir);
    crashPoint("write.checkpointed");
    const memory = await this.#images.seal(written);
    crashPoint("write.sealed");
    return memory;
  }
}

function imageOf(request: ImageRequest, memory: ImageRecord["memory"], area: string): ImageRecord {
  const { record, imageId, kind, agentUnresponsive } = request;
  const { runtime, templateId, buildId, size, layers, agentDir, agentVersion, allowInternetAccess, identity, slot } = record;
  const frozenAreas = request.frozenAreas ?? record.frozenAreas;
  return {
    version: 1,
    imageId,
    kind,
    runtime,
    templateId,
    buildId,
    size,
    layers,
    agentDir,
    agentVersion,
    allowInternetAccess,
    identity,
    agentUnresponsive,
    createdAtMs: Date.now(),
    ...(memory ? { memory } : {}),
    ...(kind === "pause"
      ? { frozenAreas, area, ...(slot.userNamespace ? { owner: { slotNumber: slot.number, idBase: slot.userNamespace.idBase } } : {}) }
      : { frozenAreas: [...frozenAreas, area] }),
  };
}
