// Keeps sandboxes that ended without a request: the runtime crashed, or the host ran out of memory or was switched off. The disk is intact,
// so it becomes the image of a paused sandbox. The control plane learns of it from the list of sandboxes. The image is complete before
// anything of the sandbox is released; until then it is tried again.

import { randomBytes } from "node:crypto";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { type Logger, PlatformError } from "@skerry/base";
import type { DiskAreas } from "@skerry/layers";
import { destroyCgroup } from "@skerry/runtime";
import { END_MARK, imageIdFrom } from "@skerry/wire";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import { leftoverOf } from "../containers/journal.privileged.ts";
import type { UnaskedEnd } from "../containers/unasked-ends.ts";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import { imageOf } from "../images/image-writer.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export interface KeepRequest {
  readonly reason: UnaskedEnd | "disk";
  /** The id of the image. Default: a new one. */
  readonly imageId?: string;
}

export interface KeeperOptions {
  readonly deps: HostDeps;
  readonly images: ImageStore;
  readonly containers: Containers;
  readonly logger: Logger;
}

export class Keeper {
  readonly #options: KeeperOptions;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the image is complete and nothing of the sandbox runs. Throws PlatformError("not_kept") when there is no disk, or the guest
   * requested the end.
   */
  async keep(live: LiveContainer, request: KeepRequest): Promise<ImageRecord> {
    const { deps, images } = this.#options;
    const { record } = live;
    await destroyCgroup(record.cgroupPath);
    if (!isToBeKept(deps.areas, record))
      throw new PlatformError("not_kept", `the disk of sandbox ${record.sandboxId} is gone or not wanted`);
    const image = commitKept(images, record, request);
    crashPoint("keep.committed");
    await this.leave(live, image);
    return image;
  }

  /** Keeps a sandbox that could not continue from its complete snapshot, with the disk and the memory of this snapshot. */
  async keepFrom(live: LiveContainer, snapshot: ImageRecord): Promise<ImageRecord> {
    const { images } = this.#options;
    const imageId = imageIdFrom(randomBytes);
    images.shareMemory(snapshot, imageId);
    const image: ImageRecord = {
      ...snapshot,
      imageId,
      kind: "pause",
      createdAtMs: Date.now(),
      kept: "exited",
      local: { ...snapshot.local, isMemoryShared: true },
    };
    images.commit(image);
    await this.leave(live, image);
    return image;
  }

  /** Releases the container of a kept sandbox. The image replaces it: remains of the container belong to no sandbox. */
  async leave({ record }: LiveContainer, image: ImageRecord): Promise<void> {
    const { containers, images, logger } = this.#options;
    const leftover = leftoverOf(record);
    containers.set(leftover);
    crashPoint("keep.recorded");
    // The image that the sandbox was resumed from is out of date, if it still exists.
    const { imageId: before } = record;
    if (before !== undefined && before !== image.imageId && images.get(before)?.kind === "pause") await containers.discardImage(before);
    const facts = { sandbox_id: record.sandboxId, image_id: image.imageId, reason: image.kept, with_memory: image.memory !== undefined };
    logger.warn(facts, image.kept === "disk" ? "sandbox paused by its node" : "a sandbox ended by itself; it is paused now");
    await containers.tryToGiveBack(leftover);
  }
}

/** Writes the image of a sandbox that has ended. Preconditions: its area exists, and nothing of it runs. */
export function commitKept(
  images: ImageStore,
  record: SandboxRecord,
  { reason, imageId = imageIdFrom(randomBytes) }: KeepRequest,
): ImageRecord {
  const about = { record, imageId, kind: "pause", withMemory: false, agentUnresponsive: false } as const;
  const image: ImageRecord = { ...imageOf(about, undefined, record.area), kept: reason };
  images.begin(imageId);
  images.commit(image);
  return image;
}

/** Whether an ended sandbox has a disk, and its guest did not request the end. */
export function isToBeKept(areas: DiskAreas, { area }: SandboxRecord): boolean {
  return areas.list().includes(area) && lstatSync(join(areas.paths(area).upper, END_MARK), { throwIfNoEntry: false }) === undefined;
}

/** Whether an ended sandbox has its image already, because the former daemon was interrupted after it wrote the image. */
export function isKept(images: ImageStore, record: SandboxRecord): boolean {
  return images.list().some(({ kind, kept, local }) => kind === "pause" && kept !== undefined && local.area === record.area);
}

/** Why a kept sandbox lost its memory, as a message for callers. */
export function memoryLostBy(image: Pick<ImageRecord, "kept" | "memory">): string {
  if (image.kept === undefined || image.memory) return "";
  if (image.kept === "disk") return "the sandbox was filling its machine's disk, which had no room for its memory";
  return image.kept === "memory"
    ? "the sandbox ran out of memory and ended"
    : "the sandbox's runtime ended although nobody had asked for it";
}
