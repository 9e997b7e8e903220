// An image of a sandbox that goes on. Its area becomes a layer that the image and the sandbox share, and the sandbox goes on
// above it on a new one: nobody copies a disk. A process can't be moved onto another disk while it runs, so the sandbox
// is brought back from its own image at once: the same address, the same connections, a moment's standstill.
//
// There is no way back once its process has ended. So what the sandbox goes on with is made before it is frozen, whatever else can be
// missing is looked for before the image is complete, and a failure until then leaves it running. Later ones are only tried again; the
// image stays, whatever happens.

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

/** An image of a sandbox that goes on. */
export interface Taken {
  readonly image: ImageRecord;
  /** Why the sandbox went on without its memory; "" when it has it. */
  readonly memoryLostReason: string;
}

interface ChainOf {
  readonly frozenAreas: readonly string[];
}

/** How a sandbox that stands still, or has ended, goes on. */
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
    const phases = new Phases();
    const { checkpoint } = runtimeOf(deps.config, record.runtime).capabilities;
    const frozenAreas = await this.#chain.shortened(record);
    phases.mark("chain");
    const successorArea = checkpoint ? await this.#prepareArea(record, frozenAreas) : undefined;
    phases.mark("prepare");
    // What we would send now must not arrive before the sandbox's connections are there again.
    const held = [...live.connections];
    for (const socket of held) socket.cork();
    try {
      const wanted = { ...request, frozenAreas };
      const taken = await whileStandingStill(live, () =>
        successorArea === undefined ? this.#copy(live, wanted) : this.#moveOn(live, { ...wanted, successorArea }),
      );
      logger.info({ sandbox_id: record.sandboxId, image_id: request.imageId, ...phases.fields() }, "snapshot taken");
      return taken;
    } catch (error) {
      await containers.collectAreas([...frozenAreas, ...(successorArea === undefined ? [] : [successorArea])]);
      throw error;
    } finally {
      for (const socket of held) socket.uncork();
    }
  }

  /** The paused sandbox and the image share memory and disk from then on. */
  async ofPaused(source: ImageRecord, { imageId, memory }: SnapshotRequest): Promise<ImageRecord> {
    const { images } = this.#options;
    const shared = await this.#share(source, { memory });
    const { memory: stored, kept: _kept, ...disk } = shared;
    const { frozenAreas } = shared.local;
    const about = { imageId, kind: "snapshot", createdAtMs: Date.now() } as const;
    const image: ImageRecord = { ...disk, ...about, ...(memory && stored ? { memory: stored } : {}), local: { frozenAreas } };
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

  /** Makes a paused sandbox's own area one that others may lie on; it gets a new one when it is resumed. */
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
      // Itself, and the one that it gets.
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

  /** What a sandbox goes on with once its own area is a layer, and nothing can be missing then: so it is made while it runs. */
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
        agentUnresponsive: false,
        frozenAreas,
        layerOf: async () => {
          // The last that can be missing: from here on nothing is written that is as large as its memory.
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

  /** For a runtime that can't keep memory: the disk alone, copied while the sandbox stands still. */
  async #copy({ record }: LiveContainer, { imageId, frozenAreas }: SnapshotRequest & ChainOf): Promise<Taken> {
    const { writer, containers } = this.#options;
    const idBase = record.slot.userNamespace?.idBase ?? 0;
    const copy = newAreaId();
    const layerOf = () => this.#copyArea(record.area, { copy, idBase, sizeMb: record.size.diskSizeMb });
    const about = { kind: "snapshot", withMemory: false, agentUnresponsive: false } as const;
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
   * A sandbox that stands still, or has ended, goes on from its image, which is complete. Also after a crash. Until it runs the image holds
   * its only memory, so whoever deletes the image waits for that. Answers why it goes on without its memory, "" when it goes on with it.
   * Throws when it could not even be booted; then it is kept as a paused sandbox.
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
      logger.error(facts, "sandbox could not go on with its memory after a snapshot: it is booted from its disk");
      try {
        const memoryLost = asError(error).message;
        const area = deps.areas.list().includes(areaId) ? "written" : "new";
        await this.#succeed(live, before, image, { areaId, area, memoryLost });
        return memoryLost;
      } catch (cause) {
        await keeper.keepFrom(live, image);
        throw new PlatformError("runtime_failed", `sandbox ${before.sandboxId} did not go on after a snapshot`, {
          publicMessage: "the sandbox could not go on after its image was taken: it is paused now, as it was then",
          cause: asError(cause),
        });
      }
    } finally {
      await this.#releaseEnded(before);
    }
  }

  /**
   * Its processes have to be gone, and its root, or the kernel would not take its area as a layer. What the runtime keeps of it may be
   * removed with the rest, later.
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

  /** Never throws: the sandbox has gone on, or will, or is kept, without what is left here. It is tried until it works. */
  async #releaseEnded(ended: SandboxRecord): Promise<void> {
    const { deps, containers, logger } = this.#options;
    try {
      await release(deps, ended.containerId, ended.runtime);
      await containers.collectAreas(areaIdsOf(ended));
      crashPoint("snapshot.predecessor-released");
      containers.emptyTrash();
    } catch (error) {
      const facts = { sandbox_id: ended.sandboxId, container_id: ended.containerId, err: asError(error) };
      logger.error(facts, "what a sandbox has left behind after a snapshot is not released, will be tried again");
      setTimeout(() => void this.#releaseEnded(ended), RETRY_RELEASE_MS).unref();
    }
  }

  /**
   * Memory is only brought back above a disk that nobody has written to since. Before a crash, a sandbox may have gone on for a moment on
   * the area that was prepared; and there is none when a former version of this program was interrupted.
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
      });
    } catch (error) {
      await this.#end(successor);
      await this.#releaseEnded(successor);
      throw error;
    }
    this.#recordSuccess(before, { ...started, ...(memoryLost === undefined ? {} : { memoryLost }) });
  }

  /** It runs: a record that can't be written costs nothing more. What the records of before say makes the same of both containers. */
  #recordSuccess(before: SandboxRecord, started: SandboxRecord): void {
    const { deps, containers, logger } = this.#options;
    const { imageId: _imageId, ...running } = started;
    try {
      containers.set({ ...running, state: "running" });
      crashPoint("snapshot.successor-recorded");
      // From here on it is nobody's sandbox, whatever of it can't be given back.
      writeRecord(deps.paths, leftoverOf(before));
    } catch (error) {
      logger.error(
        { sandbox_id: before.sandboxId, err: asError(error) },
        "what became of a sandbox after a snapshot could not be recorded",
      );
    }
  }

  /** What there is of the copy after a failure is for the caller to remove. */
  async #copyArea(area: string, { copy, idBase, sizeMb }: { copy: string; idBase: number; sizeMb: number }): Promise<string> {
    const { areas } = this.#options.deps;
    await areas.open(area);
    await areas.create(copy, { sizeMb, ownerId: 0, isOnlyOne: true, neededBytes: areas.ownBytes([area]) });
    await copyUpper(areas.paths(area).upper, areas.paths(copy).upper, idBase);
    await areas.sync(copy);
    return copy;
  }
}

/** `before` may be a successor itself: one that a crash has ended before anybody heard of it. */
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
