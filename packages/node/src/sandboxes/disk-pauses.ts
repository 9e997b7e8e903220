// Pauses sandboxes that fill the host's data disk. Their memory is kept when there is room for it: it may take a part of the space that the
// disk guard keeps free. The control plane learns of such a pause in the same way as of a sandbox that ended by itself.

import { randomBytes } from "node:crypto";
import { asError, type KeyedLock, type Logger } from "@skerry/base";
import { MemoryGroup } from "@skerry/runtime";
import { imageIdFrom } from "@skerry/wire";
import { type Containers, type LiveContainer, whileStandingStill } from "../containers/containers.ts";
import { type HostDeps, runtimeOf } from "../containers/host.privileged.ts";
import { floorBytesOf } from "../disk/disk-full.privileged.ts";
import { readDiskSpace } from "../disk/disk-space.privileged.ts";
import type { ImageWriter } from "../images/image-writer.ts";
import type { DiskUser } from "../limits/disk-guard.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { Keeper } from "./keeper.privileged.ts";

export interface DiskPausesOptions {
  readonly deps: HostDeps;
  readonly containers: Containers;
  readonly writer: ImageWriter;
  readonly keeper: Keeper;
  readonly lock: KeyedLock;
  readonly logger: Logger;
}

export class DiskPauses {
  readonly #options: DiskPausesOptions;

  constructor(options: DiskPausesOptions) {
    this.#options = options;
  }

  /** Waits for the turn of the sandbox. Does nothing when the sandbox does not run any more. */
  pause({ key, sandboxId }: DiskUser, facts: { freeBytes: number; grewBytes: number }): Promise<void> {
    const { containers, lock, logger } = this.#options;
    const live = containers.get(key);
    if (live?.build) return this.#endBuild(live, facts);
    return lock.run(sandboxId, async () => {
      if (live === undefined || containers.get(key) !== live || live.record.state !== "running") return;
      logger.error(
        { sandbox_id: sandboxId, free_bytes: facts.freeBytes, grew_bytes: facts.grewBytes },
        "the data disk is nearly full: the sandbox that fills it is paused",
      );
      await whileStandingStill(live, () => this.#pause(live));
    });
  }

  /** The sandbox of a build is worth nothing without the build, which fails. */
  async #endBuild(live: LiveContainer, { freeBytes, grewBytes }: { freeBytes: number; grewBytes: number }): Promise<void> {
    const { containers, logger } = this.#options;
    if (!live.build || live.build.isCommitting || containers.get(live.record.containerId) !== live) return;
    const facts = { build_id: live.record.buildId, free_bytes: freeBytes, grew_bytes: grewBytes };
    logger.error(facts, "the data disk is nearly full: the sandbox of the build that fills it is ended");
    live.build.endReason = "it was filling the disk of the machine";
    await containers.giveBack(live.record);
  }

  async #pause(live: LiveContainer): Promise<void> {
    const { keeper, logger } = this.#options;
    live.connections.reset();
    let image: ImageRecord;
    try {
      image = await this.#write(live);
    } catch (error) {
      const facts = { sandbox_id: live.record.sandboxId, err: asError(error) };
      logger.error(facts, "writing a sandbox that fills the data disk failed: its disk is kept without its memory");
      await keeper.keep(live, { reason: "disk" });
      return;
    }
    await keeper.leave(live, image);
  }

  #write(live: LiveContainer): Promise<ImageRecord> {
    const about = { kind: "pause", agentUnresponsive: false, kept: "disk" } as const;
    const withMemory = () => this.#hasRoomForMemory(live);
    return this.#options.writer.write({ ...about, withMemory, record: live.record, imageId: imageIdFrom(randomBytes) });
  }

  #hasRoomForMemory({ record }: LiveContainer): boolean {
    const { config } = this.#options.deps;
    if (!runtimeOf(config, record.runtime).capabilities.checkpoint) return false;
    const { freeBytes, totalBytes } = readDiskSpace(config.dir);
    const group = MemoryGroup.open(record.cgroupPath);
    try {
      return freeBytes - group.unwrittenBytes() - group.heldBytes() > floorBytesOf(totalBytes) / 2;
    } finally {
      group.close();
    }
  }
}
