// An image of a sandbox that goes on. Its area becomes a layer that the image and the sandbox share, and the sandbox goes on
// above it on a new one: nobody copies a disk. A process can't be moved onto another disk while it runs, so the sandbox
// is brought back from its own image at once: the same address, the same connections, a moment's standstill.

import { asError, type Logger, PlatformError } from "@skerry/base";
import { newAreaId } from "@skerry/layers";
import { holdTraffic, letTrafficGo, type MemoryImage, readdressSlot } from "@skerry/runtime";
import { crashPoint } from "../crash-points.ts";
import type { ImageRecord } from "../images/image.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import { initialiseAgent } from "./agent-client.ts";
import { agentWaitOf } from "./agent-wait.ts";
import { AreaChain } from "./area-chain.privileged.ts";
import { type Containers, type LiveContainer, whileStandingStill } from "./containers.ts";
import { copyUpper } from "./copy-area.privileged.ts";
import { cgroupPathOf, type HostDeps, release, runtimeOf } from "./host.privileged.ts";
import type { ImageUses } from "./image-uses.ts";
import type { ImageWriter } from "./image-writer.ts";
import { type SandboxRecord, writeRecord } from "./journal.privileged.ts";
import { Phases } from "./phases.ts";

export interface SnapshotsOptions {
  readonly deps: HostDeps;
  readonly images: ImageStore;
  readonly containers: Containers;
  readonly writer: ImageWriter;
  readonly uses: ImageUses;
  readonly logger: Logger;
}

export interface SnapshotRequest {
  readonly imageId: string;
  readonly memory: boolean;
}

interface ChainOf {
  readonly frozenAreas: readonly string[];
}

export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #chain: AreaChain;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#chain = new AreaChain(options.deps.areas, options.logger);
  }

  async ofRunning(live: LiveContainer, request: SnapshotRequest): Promise<ImageRecord> {
    const { deps, containers, logger } = this.#options;
    const { record } = live;
    const phases = new Phases();
    const frozenAreas = await this.#chain.shortened(record.frozenAreas);
    phases.mark("chain");
    // What we would send now must not arrive before the sandbox's connections are there again.
    const held = [...live.connections];
    for (const socket of held) socket.cork();
    try {
      const { checkpoint } = runtimeOf(deps.config, record.runtime).capabilities;
      const wanted = { ...request, frozenAreas };
      const image = await whileStandingStill(live, () => (checkpoint ? this.#moveOn(live, wanted) : this.#copy(live, wanted)));
      logger.info({ sandbox_id: record.sandboxId, image_id: request.imageId, ...phases.fields() }, "snapshot taken");
      return image;
    } catch (error) {
      await containers.collectAreas(frozenAreas);
      throw error;
    } finally {
      for (const socket of held) socket.uncork();
    }
  }

  /** The paused sandbox and the image share memory and disk from then on. */
  async ofPaused(source: ImageRecord, { imageId, memory }: SnapshotRequest): Promise<ImageRecord> {
    const { images } = this.#options;
    const shared = await this.#share(source);
    images.shareMemory(shared, imageId);
    crashPoint("share.memory-linked");
    const { memory: stored, ...disk } = shared;
    const image: ImageRecord = {
      ...disk,
      imageId,
      kind: "snapshot",
      createdAtMs: Date.now(),
      ...(memory && stored ? { memory: stored } : {}),
    };
    images.commit(image);
    crashPoint("share.committed");
    return image;
  }

  /** Makes a paused sandbox's own area one that others may lie on; it gets a new one when it is resumed. */
  async #share(source: ImageRecord): Promise<ImageRecord> {
    const { images, containers } = this.#options;
    const { area, owner, ...rest } = source;
    if (area === undefined) return source;
    const chain = await this.#chain.shortened(source.frozenAreas);
    const frozen = owner === undefined ? area : await this.#copyArea(area, { idBase: owner.idBase, sizeMb: source.size.diskSizeMb });
    crashPoint("share.area-copied");
    const shared: ImageRecord = { ...rest, frozenAreas: [...chain, frozen] };
    images.commit(shared);
    crashPoint("share.source-committed");
    if (owner !== undefined) containers.releaseNumber(owner.slotNumber);
    await containers.collectAreas([area, ...source.frozenAreas]);
    return shared;
  }

  async #moveOn(live: LiveContainer, { imageId, memory, frozenAreas }: SnapshotRequest & ChainOf): Promise<ImageRecord> {
    const { writer } = this.#options;
    await holdTraffic(live.record.slot);
    crashPoint("snapshot.traffic-held");
    try {
      const { record } = live;
      const image = await writer.write({ record, imageId, kind: "snapshot", withMemory: true, agentUnresponsive: false, frozenAreas });
      await this.goOnFrom(live, image);
      return memory ? image : this.#dropMemory(image);
    } finally {
      await letTrafficGo(live.record.slot);
    }
  }

  #dropMemory(image: ImageRecord): ImageRecord {
    const { images } = this.#options;
    const disk = images.dropMemory(image);
    crashPoint("snapshot.memory-dropped");
    return disk;
  }

  /** For a runtime that can't keep memory: the disk alone, copied while the sandbox stands still. */
  async #copy({ record }: LiveContainer, { imageId, frozenAreas }: SnapshotRequest & ChainOf): Promise<ImageRecord> {
    const { writer } = this.#options;
    const idBase = record.slot.userNamespace?.idBase ?? 0;
    const layerOf = () => this.#copyArea(record.area, { idBase, sizeMb: record.size.diskSizeMb });
    const about = { kind: "snapshot", withMemory: false, agentUnresponsive: false } as const;
    const image = await writer.write({ ...about, record, imageId, frozenAreas, layerOf });
    await writer.goOn(record);
    return image;
  }

  /**
   * A sandbox that stands still, or has ended, goes on from its image, which is complete. Also after a crash. Until it runs the image holds
   * its only memory, so whoever deletes the image waits for that. Throws when it could not even be booted; then it has ended.
   */
  goOnFrom(live: LiveContainer, image: ImageRecord): Promise<void> {
    return this.#options.uses.during(image.imageId, this.#goOnFrom(live, image));
  }

  async #goOnFrom(live: LiveContainer, image: ImageRecord): Promise<void> {
    const { deps, containers, images, logger } = this.#options;
    const before = live.record;
    await runtimeOf(deps.config, before.runtime).destroy({ id: before.containerId, cgroupPath: before.cgroupPath });
    crashPoint("snapshot.predecessor-ended");
    try {
      await this.#succeed(live, before, image, await images.memoryOf(image));
    } catch (error) {
      const facts = { sandbox_id: before.sandboxId, image_id: image.imageId, err: asError(error) };
      logger.error(facts, "sandbox could not go on with its memory after a snapshot: it is booted from its disk");
      try {
        await this.#succeed(live, before, image, undefined);
      } catch (cause) {
        containers.unaskedEnds.add(before.sandboxId, "exited");
        await containers.tryToGiveBack(live.record);
        throw new PlatformError("runtime_failed", `sandbox ${before.sandboxId} did not go on after a snapshot`, { cause: asError(cause) });
      }
    } finally {
      await release(deps, before.containerId, before.runtime);
      await containers.collectAreas(before.frozenAreas);
      crashPoint("snapshot.predecessor-released");
      containers.emptyTrash();
    }
  }

  async #succeed(live: LiveContainer, before: SandboxRecord, image: ImageRecord, memory: MemoryImage | undefined): Promise<void> {
    const { deps, containers } = this.#options;
    const successor = successorOf(before, image, {
      containerId: containers.newId(),
      area: newAreaId(),
      instance: deps.config.instance,
    });
    await readdressSlot(before.slot, deps.names, { quiet: memory !== undefined });
    crashPoint("snapshot.readdressed");
    containers.rekey(live, successor);
    try {
      const started = await containers.start({ record: successor, hasArea: false, ...(memory ? { memory } : {}) });
      await letTrafficGo(before.slot);
      await initialiseAgent({
        ...agentWaitOf(started, { isRestored: memory !== undefined }),
        identity: before.identity,
        currentToken: memory ? before.identity.accessToken : "",
      });
      const { imageId: _imageId, ...running } = started;
      containers.set({ ...running, state: "running" });
      crashPoint("snapshot.successor-recorded");
      // From here on it is nobody's sandbox, whatever of it can't be given back.
      writeRecord(deps.paths, { ...before, sandboxId: "", state: "killing" });
    } catch (error) {
      await release(deps, successor.containerId, successor.runtime);
      await deps.areas.destroy(successor.area);
      throw error;
    }
  }

  async #copyArea(area: string, options: { idBase: number; sizeMb: number }): Promise<string> {
    const { areas } = this.#options.deps;
    const copy = newAreaId();
    await areas.create(copy, { sizeMb: options.sizeMb, ownerId: 0 });
    await areas.open(area);
    await copyUpper(areas.paths(area).upper, areas.paths(copy).upper, options.idBase);
    return copy;
  }
}

function successorOf(
  before: SandboxRecord,
  image: ImageRecord,
  own: { containerId: string; area: string; instance: string },
): SandboxRecord {
  const { process: _process, binary: _binary, ...rest } = before;
  return {
    ...rest,
    containerId: own.containerId,
    state: "snapshotting",
    imageId: image.imageId,
    frozenAreas: image.frozenAreas,
    area: own.area,
    cgroupPath: cgroupPathOf(own.instance, own.containerId),
  };
}
