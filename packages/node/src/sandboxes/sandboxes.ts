// The sandboxes of this machine: create, pause, resume, snapshot, kill, find, and notice when one ends by itself. Calls for
// one sandbox take turns.

import { asError, KeyedLock, type Logger, PlatformError, type RelaySocket } from "@skerry/base";
import { destroyCgroup } from "@skerry/runtime";
import type { SandboxOptions, SandboxSecrets, SandboxSpec } from "@skerry/wire/node";
import { isAgentHealthy } from "../agent/agent-client.ts";
import { guestSilent } from "../agent/guest-silent.ts";
import { type Containers, type LiveContainer, whileStandingStill } from "../containers/containers.ts";
import { type HostDeps, runtimeOf } from "../containers/host.privileged.ts";
import { leftoverOf } from "../containers/journal.privileged.ts";
import { isSameProcess } from "../containers/process-identity.ts";
import type { UnaskedEnd } from "../containers/unasked-ends.ts";
import { crashPoint } from "../crash-points.ts";
import { assertAboveFloor } from "../disk/disk-full.privileged.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { ImageUses } from "../images/image-uses.ts";
import type { ImageWriter } from "../images/image-writer.ts";
import type { DiskUser } from "../limits/disk-guard.ts";
import { assertHostMemory } from "../limits/host-memory.ts";
import type { WarmPool } from "../pool/warm-pool.ts";
import { type ImageRecord, memoryBytes } from "../records/image-record.ts";
import type { SandboxMakeup } from "../records/sandbox-record.ts";
import { changeOptions, changeSecrets } from "./change-options.ts";
import { DiskPauses } from "./disk-pauses.ts";
import { EndWatch } from "./end-watch.ts";
import type { Keeper } from "./keeper.privileged.ts";
import { makeupOf } from "./makeup.ts";
import { checkedId, ownerOf } from "./owner.ts";
import { Phases } from "./phases.ts";
import type { SnapshotRequest, Snapshots, Taken } from "./snapshots.ts";
import { bringUpBooted } from "./start-command.ts";
import type { StartGate } from "./start-gate.ts";
import { afterHooks, type Started, type Starter } from "./starter.ts";

const HEALTH_TIMEOUT_MS = 2_000;

export interface SandboxesOptions {
  readonly deps: HostDeps;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly starter: Starter;
  readonly writer: ImageWriter;
  readonly snapshots: Snapshots;
  readonly keeper: Keeper;
  readonly uses: ImageUses;
  readonly pool: WarmPool;
  readonly gate: StartGate;
  readonly logger: Logger;
}

export interface PauseRequest {
  readonly sandboxId: string;
  readonly imageId: string;
  readonly memory: boolean;
  readonly requireHealthyGuest: boolean;
}

export class Sandboxes {
  readonly #options: SandboxesOptions;
  readonly #lock = new KeyedLock();
  readonly #diskPauses: DiskPauses;
  readonly #watch: EndWatch;

  constructor(options: SandboxesOptions) {
    this.#options = options;
    this.#watch = new EndWatch({ ...options, lock: this.#lock });
    this.#diskPauses = new DiskPauses({ ...options, lock: this.#lock });
  }

  /** Begins to watch for sandboxes that end by themselves. */
  watch(): void {
    this.#watch.start();
  }

  list() {
    const theirs = this.#options.containers.all().filter(({ record }) => record.sandboxId !== "");
    return theirs.map(({ record: { sandboxId, state, memoryLost: memoryLostReason = "", slot } }) => {
      const secretsVersion = this.#options.deps.policy.secretsVersionOf(slot);
      return { sandboxId, state, memoryLostReason, ...(secretsVersion === undefined ? {} : { secretsVersion }) };
    });
  }

  /** The images that this node wrote of sandboxes that ended without a request. */
  kept(): ImageRecord[] {
    return this.#options.images.list().filter(({ kind, kept }) => kind === "pause" && kept !== undefined);
  }

  /** Sandboxes that ended without a request in the last minutes. */
  unaskedEnds(): { sandboxId: string; reason: UnaskedEnd }[] {
    return this.#options.containers.unaskedEnds.list();
  }

  /**
   * Opens a connection to the address of a running sandbox, which is reset when the sandbox ends. While a snapshot is written the sandbox
   * stands still, and this waits. Throws PlatformError("sandbox_gone").
   */
  async connect<T extends RelaySocket | undefined>(sandboxId: string, open: (host: string) => Promise<T>): Promise<T> {
    const standstill = () => this.#live(sandboxId)?.standstill;
    while (standstill()) await standstill();
    const live = this.#running(sandboxId);
    const socket = await live.connections.open(() => open(live.record.slot.addresses.guest));
    if (this.#live(sandboxId) === live) return socket;
    socket?.destroy();
    throw notRunning(sandboxId);
  }

  /** Creates a sandbox from the layers of its template, or from the image of a snapshot. */
  async create(spec: SandboxSpec): Promise<Started> {
    const made = this.#lock.run(checkedId(spec), async () => {
      if (this.#live(spec.sandboxId)) throw new PlatformError("already_exists", `sandbox ${spec.sandboxId} exists`);
      return this.#create(spec);
    });
    return this.#afterStart(await made);
  }

  async #create(spec: SandboxSpec): Promise<Started> {
    const { deps, pool, gate, logger } = this.#options;
    // Ready sandboxes need room too: they begin to write.
    await deps.areas.assertRoom();
    assertHostMemory();
    if (spec.imageId !== "") return gate.run(spec.turnGroup, () => this.#start(spec, this.#imageOf(spec), "sandbox created"));
    const phases = new Phases("claim");
    const makeup = makeupOf(this.#options.deps.config, spec, undefined);
    const claimed = await pool.claim(makeup, ownerOf(spec, undefined));
    if (!claimed) return gate.run(spec.turnGroup, () => this.#startAnew(spec, makeup));
    const facts = { sandbox_id: spec.sandboxId, template_id: spec.templateId, runtime: makeup.runtime, start_kind: claimed.kind };
    logger.info({ ...facts, ...phases.fields() }, "sandbox created");
    return claimed;
  }

  /** Starts from the image of the template, if there is one. The pool may delete an unusable image meanwhile; then the sandbox boots. */
  async #startAnew(spec: SandboxSpec, makeup: SandboxMakeup): Promise<Started> {
    const image = this.#options.pool.imageFor(makeup);
    try {
      return await this.#start(spec, image, "sandbox created");
    } catch (error) {
      if (!image || !(error instanceof PlatformError) || error.code !== "image_missing") throw error;
      return await this.#start(spec, undefined, "sandbox created");
    }
  }

  /** Resumes a sandbox from its image. A repeated call after a success returns the same answer. */
  async resume(spec: SandboxSpec): Promise<Started> {
    const resumed = this.#lock.run(checkedId(spec), async () => {
      const live = this.#live(spec.sandboxId);
      if (live?.record.state === "running" && live.record.imageId === spec.imageId) {
        const { record } = live;
        return {
          record,
          kind: record.isRestored ? "restore" : "boot",
          memoryLostReason: record.memoryLost ?? "",
          hooksRun: false,
        } as const;
      }
      if (live) throw new PlatformError("already_exists", `sandbox ${spec.sandboxId} exists`);
      const image = this.#imageOf(spec);
      // With less free space the disk guard would pause the sandbox again at once.
      if (image.kept === "disk") assertAboveFloor(this.#options.deps.config.dir);
      await this.#untilGivenBack(image);
      const started = await this.#options.gate.run(spec.turnGroup, () => this.#start(spec, image, "sandbox resumed"));
      await this.#options.containers.discardImage(image.imageId);
      crashPoint("resume.image-discarded");
      return started;
    });
    return this.#afterStart(await resumed);
  }

  async #afterStart(started: Started): Promise<Started> {
    await afterHooks(started);
    await bringUpBooted(this.#options, started.record.containerId);
    return started;
  }

  async #start(spec: SandboxSpec, image: ImageRecord | undefined, message: string): Promise<Started> {
    const { starter, logger } = this.#options;
    const { sandboxId } = spec;
    const phases = new Phases("start");
    const makeup = makeupOf(this.#options.deps.config, spec, image);
    const facts = { sandbox_id: sandboxId, template_id: spec.templateId, runtime: makeup.runtime };
    try {
      assertHostMemory(image && !spec.withoutMemory ? memoryBytes(image) : 0);
      const started = await starter.start({
        // The container has the id of its sandbox if that is free, which is easier to read on the host.
        containerId: this.#options.containers.isNameFree(sandboxId) ? sandboxId : this.#options.containers.newId(),
        sandboxId,
        makeup,
        ...ownerOf(spec, image),
        ...(image ? { image } : {}),
        withMemory: !spec.withoutMemory,
      });
      logger.info({ ...facts, start_kind: started.kind, ...phases.fields() }, message);
      return started;
    } catch (error) {
      logger.error({ ...facts, err: asError(error), ...phases.fields() }, "sandbox not started");
      throw error;
    }
  }

  /** Replaces the options of a running sandbox. After a failure the former ones hold. */
  async setOptions(sandboxId: string, options: SandboxOptions, secrets?: SandboxSecrets): Promise<void> {
    await this.#lock.run(sandboxId, async () => changeOptions(this.#options, this.#running(sandboxId), { options, secrets }));
  }

  async setSecrets(sandboxId: string, secrets: SandboxSecrets): Promise<void> {
    await this.#lock.run(sandboxId, async () => changeSecrets(this.#options, this.#running(sandboxId), secrets));
  }

  /** Writes a sandbox to an image and ends it. After a failure the sandbox runs as before, and there is no image. */
  async pause(request: PauseRequest): Promise<ImageRecord> {
    const { sandboxId, imageId } = request;
    return this.#lock.run(sandboxId, async () => {
      const written = this.#options.images.get(imageId);
      if (written && !this.#live(sandboxId)) return written;
      const live = this.#running(sandboxId);
      // Callers that arrive now wait until the sandbox is gone or continues.
      return await whileStandingStill(live, async () => {
        try {
          return await this.#pause(live, request);
        } catch (error) {
          const { sandboxId: owner, process } = live.record;
          if (owner === "" || isSameProcess(process)) throw error;
          return await this.#options.keeper.keep(live, { imageId, reason: this.#options.containers.unaskedEndOf(live) });
        }
      });
    });
  }

  async #pause({ record, connections }: LiveContainer, request: PauseRequest): Promise<ImageRecord> {
    const { deps, containers, writer, logger } = this.#options;
    const { sandboxId, imageId } = request;
    const phases = new Phases("pause");
    const withMemory = request.memory && runtimeOf(deps.config, record.runtime).capabilities.checkpoint;
    const isHealthy = await isAgentHealthy(record.slot.addresses.guest, HEALTH_TIMEOUT_MS);
    if (!isHealthy && (request.requireHealthyGuest || !withMemory)) throw guestSilent(sandboxId);
    phases.mark("health");
    connections.reset();
    const about = { kind: "pause", withMemory, filesOnly: !request.memory, agentUnresponsive: !isHealthy } as const;
    const image = await writer.write({ ...about, record, imageId });
    phases.mark("write");
    // From here on the image replaces the container. Remains of the container belong to no sandbox.
    const leftover = leftoverOf(record);
    containers.set(leftover);
    crashPoint("pause.recorded");
    await destroyCgroup(record.cgroupPath);
    const givenBack = containers.tryToGiveBack(leftover).then(() => crashPoint("pause.given-back"));
    // Nothing of the sandbox runs, so the caller does not wait for the release; the next start does. When the disk is tied to its slot, the
    // caller waits as well.
    if (image.local.owner) await givenBack;
    const facts = { sandbox_id: sandboxId, image_id: imageId, with_memory: withMemory, size_bytes: memoryBytes(image) };
    logger.info({ ...facts, ...phases.fields() }, "sandbox paused");
    return image;
  }

  /** Pauses a sandbox that fills the host's data disk. */
  pauseForDisk(user: DiskUser, facts: { freeBytes: number; grewBytes: number }): Promise<void> {
    return this.#diskPauses.pause(user, facts);
  }

  /** Writes an image of a running sandbox, or of a paused one, given by `sourceImageId`. */
  async snapshot(request: { sandboxId: string; imageId: string; memory: boolean; sourceImageId: string }): Promise<Taken> {
    const { snapshots, images } = this.#options;
    const taken = await this.#lock.run(request.sandboxId, async () => {
      const written = images.get(request.imageId);
      if (written) return { image: written, memoryLostReason: this.#live(request.sandboxId)?.record.memoryLost ?? "" };
      if (request.sourceImageId === "") return this.#snapshot(this.#running(request.sandboxId), request);
      const source = images.get(request.sourceImageId);
      if (source?.kind !== "pause") throw new PlatformError("image_missing", `image ${request.sourceImageId} is not here`);
      await this.#untilGivenBack(source);
      return { image: await snapshots.ofPaused(source, request), memoryLostReason: "" };
    });
    this.bringUp(this.#live(request.sandboxId));
    return taken;
  }

  async #snapshot(live: LiveContainer, request: SnapshotRequest): Promise<Taken> {
    const { snapshots, keeper, containers } = this.#options;
    try {
      return await snapshots.ofRunning(live, request);
    } catch (error) {
      const { sandboxId, state, process } = live.record;
      if (state !== "running" || isSameProcess(process)) throw error;
      await keeper.keep(live, { reason: containers.unaskedEndOf(live) });
      throw new PlatformError("runtime_failed", `sandbox ${sandboxId} ended while an image of it was taken`, {
        publicMessage:
          "the sandbox's runtime ended while an image of it was taken: it is paused now, with its files and without its memory",
        cause: asError(error),
      });
    }
  }

  /** Resolves when the image cannot be used any more. Returns false when there was none. */
  async deleteImage(imageId: string): Promise<boolean> {
    const { images, uses, containers } = this.#options;
    if (!images.get(imageId) && !images.damaged.has(imageId)) return false;
    await uses.settled(imageId);
    await containers.discardImage(imageId);
    return true;
  }

  /**
   * Kills a sandbox. Resolves when only files in the trash are left. Returns false when there was no such sandbox. Its images stay, except
   * one that this node wrote by itself: the caller may not know of it.
   */
  async kill(sandboxId: string): Promise<boolean> {
    return this.#lock.run(sandboxId, async () => {
      const kept = this.kept().filter(({ identity }) => identity.sandboxId === sandboxId);
      for (const { imageId } of kept) await this.deleteImage(imageId);
      const live = this.#live(sandboxId);
      if (!live) return kept.length > 0;
      const phases = new Phases("kill");
      await this.#options.containers.giveBack(live.record);
      this.#options.logger.info({ sandbox_id: sandboxId, ...phases.fields() }, "sandbox killed");
      return true;
    });
  }

  /** Continues a snapshot that a former daemon was taking. The next callers of the sandbox wait for it. */
  continueSnapshot(live: LiveContainer): void {
    const { imageId = "" } = live.record;
    const image = this.#options.images.get(imageId);
    if (!image) return;
    const goingOn = this.#continue(live, () => this.#options.snapshots.goOnFrom(live, image));
    // The use of the image begins now, before the turn of the sandbox: the control plane deletes images that no operation uses.
    void this.#options.uses.during(imageId, goingOn);
  }

  /** Finishes a resume that a former daemon began. The sandbox has run since its restore, so its image must not be used again. */
  continueResume(live: LiveContainer): void {
    this.#continue(live, async () => {
      const { starter, containers, keeper } = this.#options;
      const { imageId = "", process } = live.record;
      try {
        await starter.finish(live);
        await containers.discardImage(imageId);
      } catch (error) {
        if (!isSameProcess(process)) await keeper.keep(live, { reason: containers.unaskedEndOf(live) });
        throw error;
      }
    });
  }

  /** Runs the start command if it is owed to a sandbox for which nobody waits. */
  bringUp(live: LiveContainer | undefined): void {
    if (live) void bringUpBooted(this.#options, live.record.containerId);
  }

  #continue(live: LiveContainer, work: () => Promise<unknown>): Promise<void> {
    const { sandboxId } = live.record;
    const standstill = this.#lock
      .run(sandboxId, async () => void (await work()))
      .catch((error: unknown) => {
        this.#options.logger.error(
          { sandbox_id: sandboxId, err: asError(error) },
          "an interrupted operation of a sandbox could not be finished",
        );
      })
      .finally(() => {
        live.standstill = undefined;
        this.bringUp(live);
      });
    live.standstill = standstill;
    return standstill;
  }

  /** Stops watching. The sandboxes continue to run, and the next start adopts them. */
  async close(): Promise<void> {
    this.#watch.stop();
    await this.#options.containers.close();
  }

  #live(sandboxId: string): LiveContainer | undefined {
    return this.#options.containers.ofSandbox(sandboxId);
  }

  #running(sandboxId: string): LiveContainer {
    const live = this.#live(sandboxId);
    if (live?.record.state !== "running") throw notRunning(sandboxId);
    return live;
  }

  /** Waits until the container of a paused sandbox is released: it may still have the disk mounted. */
  async #untilGivenBack(image: ImageRecord): Promise<void> {
    const { containers } = this.#options;
    const before = containers.all().find(({ record }) => record.area === image.local.area);
    if (before) await containers.giveBack(before.record);
  }

  #imageOf(spec: SandboxSpec): ImageRecord {
    const { images } = this.#options;
    const image = images.get(spec.imageId);
    if (images.damaged.has(spec.imageId)) throw new PlatformError("image_damaged", `the record of image ${spec.imageId} can't be read`);
    if (!image) throw new PlatformError("image_missing", `image ${spec.imageId} is not on this machine`);
    return image;
  }
}

function notRunning(sandboxId: string): PlatformError {
  return new PlatformError("sandbox_gone", `sandbox ${sandboxId} is not running on this node`);
}
