// Takes an image of a sandbox that continues to run. The sandbox's area becomes a layer that the image and the sandbox share. The sandbox
// continues on a new area above it, so no disk is copied. A running process cannot move to another disk. Therefore the sandbox is restored
// from its own image at once, with the same address and the same connections, after a short standstill.
//
// There is no way back after the end of the sandbox's process. Therefore the new area is made before the sandbox is frozen, and everything
// else that could fail is checked before the image is complete. A failure before that leaves the sandbox running. Later steps are only
// repeated, and the image stays in any case.

import { asError, type Logger, PlatformError } from "@skerry/base";
import { assertMountable, newAreaId, removeRootFilesystem } from "@skerry/layers";
import { destroyCgroup, holdTraffic, letTrafficGo, readdressSlot } from "@skerry/runtime";
import { initialiseAgent } from "../agent/agent-client.ts";
import { agentWaitOf } from "../agent/agent-wait.ts";
import { newGeneration } from "../agent/generation.ts";
import { AreaChain } from "../areas/area-chain.privileged.ts";
import { copyUpper } from "../areas/copy-area.privileged.ts";
import { type Containers, type LiveContainer, whileStandingStill } from "../containers/containers.ts";
import { cgroupPathOf, type HostDeps, release, runtimeOf, type StartRequest } from "../containers/host.privileged.ts";
import { areaIdsOf, leftoverOf, writeRecord } from "../containers/journal.privileged.ts";
import { linkUpPaused } from "../containers/root.privileged.ts";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { ImageUses } from "../images/image-uses.ts";
import type { ImageWriter } from "../images/image-writer.ts";
import { siteFor } from "../network/site-network.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { Keeper } from "./keeper.privileged.ts";
import { Phases } from "./phases.ts";

const RETRY_RELEASE_MS = 5_000;

export interface SnapshotsOptions {
  readonly deps: HostDeps;
  readonly images: ImageStore;
  readonly containers: Containers;
  readonly writer: ImageWriter;
  readonly uses: ImageUses;
  readonly keeper: Keeper;
  readonly logger: Logger;
}

export interface SnapshotRequest {
  readonly imageId: string;
  readonly memory: boolean;
}

/** An image of a sandbox that continues to run. */
export interface Taken {
  readonly image: ImageRecord;
  /** Why the sandbox continued without its memory; "" when it has its memory. */
  readonly memoryLostReason: string;
}

interface ChainOf {
  readonly frozenAreas: readonly string[];
}

/** How a sandbox continues that stands still or has ended. */
type Way = Pick<StartRequest, "area" | "memory"> & { readonly areaId: string; readonly memoryLost?: string };

export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #chain: AreaChain;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#chain = new AreaChain(options.deps.areas, options.logger);
  }

  async ofRunning(live: LiveContainer, request: SnapshotRequest): Promise<Taken> {
    const { deps, containers, logger } = this.#options;
    const { record } = live;
    const phases = new Phases("snapshot");
    const { checkpoint } = runtimeOf(deps.config, record.runtime).capabilities;
    const frozenAreas = await this.#chain.shortened(record);
    phases.mark("chain");
    const successorArea = checkpoint ? await this.#prepareArea(record, frozenAreas) : undefined;
    phases.mark("prepare");
    let letGo = () => {};
    try {
      const wanted = { ...request, frozenAreas };
      const taken = await whileStandingStill(live, async () => {
        await live.connections.settle();
        // Data for the sandbox must not arrive before its connections are restored.
        letGo = live.connections.hold();
        return successorArea === undefined ? this.#copy(live, wanted) : this.#moveOn(live, { ...wanted, successorArea });
      });
      logger.info({ sandbox_id: record.sandboxId, image_id: request.imageId, ...phases.fields() }, "snapshot taken");
      return taken;
    } catch (error) {
      await containers.collectAreas([...frozenAreas, ...(successorArea === undefined ? [] : [successorArea])]);
      throw error;
    } finally {
      letGo();
    }
  }

  /** Takes an image of a paused sandbox. Both share memory and disk from then on. */
  async ofPaused(source: ImageRecord, { imageId, memory }: SnapshotRequest): Promise<ImageRecord> {
    const { images } = this.#options;
    const shared = await this.#share(source, { memory });
    const { memory: stored, start, kept: _kept, ...disk } = shared;
    const { frozenAreas } = shared.local;
    const about = { imageId, kind: "snapshot", createdAtMs: Date.now() } as const;
    const kept = memory ? { ...(stored && { memory: stored }), ...(start && { start }) } : {};
    const image: ImageRecord = { ...disk, ...about, ...kept, local: { frozenAreas } };
    try {
      images.shareMemory(shared, imageId);
      crashPoint("share.memory-linked");
      images.commit(image);
    } catch (error) {
      images.discard(imageId);
      this.#options.containers.emptyTrash();
      throw error;
    }
    crashPoint("share.committed");
    return image;
  }

  /** Freezes the area of a paused sandbox, so that others can use it as a layer. The sandbox gets a new area at its resume. */
  async #share(source: ImageRecord, { memory }: { memory: boolean }): Promise<ImageRecord> {
    const { deps, images, containers } = this.#options;
    const { area, owner, ...rest } = source.local;
    const local = { ...rest, ...(memory && source.memory ? { isMemoryShared: true } : {}) };
    if (area === undefined) {
      const shared = { ...source, local };
      if (local.isMemoryShared !== rest.isMemoryShared) images.commit(shared);
      return shared;
    }
    try {
      await linkUpPaused(deps, source, containers.newId());
    } catch (error) {
      await containers.collectAreas(areaIdsOf(source.local));
      throw error;
    }
    const chain = await this.#chain.shortened({ ...source, frozenAreas: local.frozenAreas });
    let frozen = area;
    let shared: ImageRecord;
    try {
      // One for this area, and one for the area that the sandbox gets at its resume.
      assertMountable(source.layers.length + chain.length + 2);
      if (owner !== undefined) {
        frozen = newAreaId();
        await this.#copyArea(area, { copy: frozen, idBase: owner.idBase, sizeMb: source.size.diskSizeMb });
      }
      crashPoint("share.area-copied");
      shared = { ...source, local: { ...local, frozenAreas: [...chain, frozen] } };
      images.commit(shared);
    } catch (error) {
      await containers.collectAreas([...chain, frozen]);
      throw error;
    }
    crashPoint("share.source-committed");
    if (owner !== undefined) containers.releaseNumber(owner.slotNumber);
    await containers.collectAreas([area, ...local.frozenAreas]);
    return shared;
  }

  /** Makes the area on which the sandbox will continue, while it still runs: after the point of no return nothing may fail. */
  async #prepareArea({ size, layers, slot }: SandboxRecord, frozenAreas: readonly string[]): Promise<string> {
    const { areas } = this.#options.deps;
    assertMountable(layers.length + frozenAreas.length + 1);
    const prepared = newAreaId();
    try {
      await areas.create(prepared, { sizeMb: size.diskSizeMb, ownerId: slot.userNamespace?.idBase ?? 0 });
    } catch (error) {
      await this.#options.containers.collectAreas(frozenAreas);
      throw error;
    }
    crashPoint("snapshot.area-prepared");
    return prepared;
  }

  async #moveOn(live: LiveContainer, about: SnapshotRequest & ChainOf & { successorArea: string }): Promise<Taken> {
    const { deps, writer } = this.#options;
    const { imageId, memory, frozenAreas, successorArea } = about;
    await holdTraffic(live.record.slot);
    crashPoint("snapshot.traffic-held");
    try {
      const record = { ...live.record, successorArea };
      const image = await writer.write({
        record,
        imageId,
        kind: "snapshot",
        withMemory: true,
        filesOnly: !memory,
        agentUnresponsive: false,
        frozenAreas,
        layerOf: async () => {
          // The last check: from here on nothing is written that is as large as the sandbox's memory.
          await deps.areas.assertRoom({ isUnderWay: true });
          return record.area;
        },
      });
      const memoryLostReason = await this.goOnFrom(live, image);
      return { image: memory ? image : this.#dropMemory(image), memoryLostReason };
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

  /** For a runtime that cannot keep memory: copies the disk while the sandbox stands still. */
  async #copy({ record }: LiveContainer, { imageId, memory, frozenAreas }: SnapshotRequest & ChainOf): Promise<Taken> {
    const { writer, containers } = this.#options;
    const idBase = record.slot.userNamespace?.idBase ?? 0;
    const copy = newAreaId();
    const layerOf = () => this.#copyArea(record.area, { copy, idBase, sizeMb: record.size.diskSizeMb });
    const about = { kind: "snapshot", withMemory: false, filesOnly: !memory, agentUnresponsive: false } as const;
    try {
      const image = await writer.write({ ...about, record, imageId, frozenAreas, layerOf });
      await writer.goOn(record);
      return { image, memoryLostReason: "" };
    } catch (error) {
      await containers.collectAreas([copy]);
      throw error;
    }
  }

  /**
   * Continues a sandbox that stands still or has ended from its complete image, also after a crash. Until it runs, the image has the only
   * copy of its memory, so a deletion of the image waits. Returns why the memory was lost, "" when it was not. Throws when the sandbox
   * could not even be booted; then it is kept as a paused sandbox.
   */
  goOnFrom(live: LiveContainer, image: ImageRecord): Promise<string> {
    return this.#options.uses.during(image.imageId, this.#goOnFrom(live, image));
  }

  async #goOnFrom(live: LiveContainer, image: ImageRecord): Promise<string> {
    const { deps, images, keeper, logger } = this.#options;
    const before = live.record;
    await this.#end(before);
    crashPoint("snapshot.predecessor-ended");
    const areaId = preparedFor(before, image) ?? newAreaId();
    try {
      await this.#succeed(live, before, image, { areaId, area: await this.#fresh(areaId), memory: await images.memoryOf(image) });
      return "";
    } catch (error) {
      const facts = { sandbox_id: before.sandboxId, image_id: image.imageId, err: asError(error) };
      logger.error(facts, "a sandbox could not continue with its memory after a snapshot; it boots from its disk");
      try {
        const memoryLost = asError(error).message;
        const area = deps.areas.list().includes(areaId) ? "written" : "new";
        await this.#succeed(live, before, image, { areaId, area, memoryLost });
        return memoryLost;
      } catch (cause) {
        await keeper.keepFrom(live, image);
        throw new PlatformError("runtime_failed", `sandbox ${before.sandboxId} did not go on after a snapshot`, {
          publicMessage: "the sandbox could not continue after its image was taken; it is paused now, as it was then",
          cause: asError(cause),
        });
      }
    } finally {
      await this.#releaseEnded(before);
    }
  }

  /**
   * Ends a container. Its processes and its root mount must be gone before the kernel accepts its area as a layer. Remains of the runtime
   * may be removed later, with the rest.
   */
  async #end(before: SandboxRecord): Promise<void> {
    const { deps, logger } = this.#options;
    const { containerId, cgroupPath, sandboxId } = before;
    await destroyCgroup(cgroupPath);
    try {
      await runtimeOf(deps.config, before.runtime).destroy({ id: containerId, cgroupPath });
    } catch (error) {
      logger.warn(
        { sandbox_id: sandboxId, container_id: containerId, err: asError(error) },
        "a runtime keeps something of an ended container",
      );
    }
    removeRootFilesystem(deps.paths.container(containerId).root);
  }

  /** Releases an ended container. Never throws, because the sandbox does not depend on it. Repeats itself until it succeeds. */
  async #releaseEnded(ended: SandboxRecord): Promise<void> {
    const { deps, containers, logger } = this.#options;
    try {
      await release(deps, ended.containerId, ended.runtime);
      await containers.collectAreas(areaIdsOf(ended));
      crashPoint("snapshot.predecessor-released");
      containers.emptyTrash();
    } catch (error) {
      const facts = { sandbox_id: ended.sandboxId, container_id: ended.containerId, err: asError(error) };
      logger.error(facts, "releasing the former container of a sandbox after a snapshot failed; will be tried again");
      setTimeout(() => void this.#releaseEnded(ended), RETRY_RELEASE_MS).unref();
    }
  }

  /**
   * Makes sure that the prepared area is empty: memory may only be restored above an unchanged disk. Before a crash, a sandbox may have
   * written to the prepared area for a moment. There is no prepared area after a former version was interrupted.
   */
  async #fresh(areaId: string): Promise<Way["area"]> {
    const { areas } = this.#options.deps;
    if (!areas.list().includes(areaId)) return "new";
    await areas.open(areaId);
    if (areas.isEmpty(areaId)) return "prepared";
    await areas.destroy(areaId);
    return "new";
  }

  async #succeed(live: LiveContainer, before: SandboxRecord, image: ImageRecord, way: Way): Promise<void> {
    const { deps, containers } = this.#options;
    const { areaId, area, memory, memoryLost } = way;
    const authority = await deps.policy.authorityOf(before.slot);
    const successor = successorOf(before, image, {
      containerId: containers.newId(),
      area: areaId,
      instance: deps.config.instance,
    });
    await readdressSlot(before.slot, deps.names, { quiet: memory !== undefined });
    crashPoint("snapshot.readdressed");
    containers.rekey(live, successor);
    let started: Awaited<ReturnType<Containers["start"]>>;
    try {
      started = await containers.start({ record: successor, area, isDue: true, ...(memory ? { memory } : {}) });
      await letTrafficGo(before.slot);
      await initialiseAgent({
        ...agentWaitOf(started, { isRestored: memory !== undefined }),
        identity: successor.identity,
        currentToken: memory ? before.identity.accessToken : "",
        // With its memory the agent knows them. They change when the sandbox is resumed.
        site: memory ? undefined : siteFor(deps.config, { image, isRestored: false, authority }),
      });
    } catch (error) {
      await this.#end(successor);
      await this.#releaseEnded(successor);
      throw error;
    }
    const lost = memoryLost === undefined ? {} : { memoryLost, ...(started.start && { startOwed: true as const }) };
    this.#recordSuccess(before, { ...started, ...lost });
  }

  /** Records that the sandbox runs. A failure is only logged: after a restart the former records lead to the same result. */
  #recordSuccess(before: SandboxRecord, started: SandboxRecord): void {
    const { deps, containers, logger } = this.#options;
    const { imageId: _imageId, ...running } = started;
    try {
      containers.set({ ...running, state: "running" });
      crashPoint("snapshot.successor-recorded");
      // From here on the former container belongs to no sandbox.
      writeRecord(deps.paths, leftoverOf(before));
    } catch (error) {
      logger.error(
        { sandbox_id: before.sandboxId, err: asError(error) },
        "what became of a sandbox after a snapshot could not be recorded",
      );
    }
  }

  /** Copies an area. After a failure the caller must remove the unfinished copy. */
  async #copyArea(area: string, { copy, idBase, sizeMb }: { copy: string; idBase: number; sizeMb: number }): Promise<string> {
    const { areas } = this.#options.deps;
    await areas.open(area);
    await areas.create(copy, { sizeMb, ownerId: 0, isOnlyOne: true, neededBytes: areas.ownBytes([area]) });
    await copyUpper(areas.paths(area).upper, areas.paths(copy).upper, idBase);
    await areas.sync(copy);
    return copy;
  }
}

/** The prepared area. `before` may be a successor itself, which a crash ended before it was recorded. */
function preparedFor(before: SandboxRecord, image: ImageRecord): string | undefined {
  const wasSuccessor = before.frozenAreas.length > 0 && before.frozenAreas.at(-1) === image.local.frozenAreas.at(-1);
  return wasSuccessor ? before.area : before.successorArea;
}

function successorOf(
  before: SandboxRecord,
  image: ImageRecord,
  own: { containerId: string; area: string; instance: string },
): SandboxRecord {
  const { process: _process, binary: _binary, successorArea: _successorArea, extraMemoryBytes: _extra, ...rest } = before;
  const extraMemoryBytes = image.memory?.extraMemoryBytes;
  return {
    ...rest,
    containerId: own.containerId,
    state: "snapshotting",
    imageId: image.imageId,
    identity: { ...before.identity, generation: newGeneration() },
    frozenAreas: image.local.frozenAreas,
    area: own.area,
    cgroupPath: cgroupPathOf(own.instance, own.containerId),
    ...(extraMemoryBytes === undefined ? {} : { extraMemoryBytes }),
  };
}
