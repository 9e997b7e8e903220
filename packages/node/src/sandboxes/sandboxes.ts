// The sandboxes of this machine: create, pause, resume, snapshot, kill, find, and notice when one ends by itself. Calls for
// one sandbox take turns.

import { asError, KeyedLock, type Logger, PlatformError, type RelaySocket } from "@skerry/base";
import { destroyCgroup } from "@skerry/runtime";
import { parseSandboxId } from "@skerry/wire";
import type { SandboxSpec } from "@skerry/wire/node";
import { crashPoint } from "../crash-points.ts";
import { type ImageRecord, memoryBytes } from "../images/image.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { WarmPool } from "../pool/warm-pool.ts";
import { type AgentIdentity, isAgentHealthy } from "./agent-client.ts";
import { type Containers, type LiveContainer, whileStandingStill } from "./containers.ts";
import { type HostDeps, runtimeOf } from "./host.privileged.ts";
import type { ImageUses } from "./image-uses.ts";
import type { ImageWriter } from "./image-writer.ts";
import type { SandboxMakeup, SandboxRecord } from "./journal.privileged.ts";
import { Phases } from "./phases.ts";
import { isSameProcess } from "./process-identity.ts";
import type { Snapshots } from "./snapshots.ts";
import type { StartGate } from "./start-gate.ts";
import type { Started, Starter } from "./starter.ts";
import type { UnaskedEnd } from "./unasked-ends.ts";

const WATCH_INTERVAL_MS = 500;
const RETRY_RELEASE_MS = 5_000;
const HEALTH_TIMEOUT_MS = 2_000;

export interface SandboxesOptions {
  readonly deps: HostDeps;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly starter: Starter;
  readonly writer: ImageWriter;
  readonly snapshots: Snapshots;
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
  /** Given back by the watch, or tried a moment ago. */
  readonly #releasing = new Set<string>();
  #watch: NodeJS.Timeout | undefined;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  /** Begins to notice what ends by itself. */
  watch(): void {
    this.#watch = setInterval(() => this.#releaseEnded(), WATCH_INTERVAL_MS);
    this.#watch.unref();
  }

  list(): { sandboxId: string; state: string }[] {
    return this.#options.containers
      .all()
      .filter(({ record }) => record.sandboxId !== "")
      .map(({ record }) => ({
        sandboxId: record.sandboxId,
        state: record.state === "snapshotting" ? "running" : record.state,
      }));
  }

  /** Of the last minutes. */
  unaskedEnds(): { sandboxId: string; reason: UnaskedEnd }[] {
    return this.#options.containers.unaskedEnds.list();
  }

  /** Address of a running sandbox; PlatformError("sandbox_gone") otherwise. Register connections made to it with `track`. */
  addressOf(sandboxId: string): string {
    return this.#running(sandboxId).record.slot.addresses.guest;
  }

  /** Resolves when the sandbox can be talked to: while it is written to a snapshot it stands still. */
  async settled(sandboxId: string): Promise<void> {
    await this.#live(sandboxId)?.standstill;
  }

  /** Ties a connection to a sandbox: it is reset when the sandbox ends. */
  track(sandboxId: string, socket: RelaySocket): void {
    const { connections } = this.#running(sandboxId);
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  }

  /** From the template's layers, or from the image of a snapshot. */
  async create(spec: SandboxSpec): Promise<Started> {
    return this.#lock.run(checkedId(spec), async () => {
      if (this.#live(spec.sandboxId)) throw new PlatformError("already_exists", `sandbox ${spec.sandboxId} exists`);
      return this.#create(spec);
    });
  }

  async #create(spec: SandboxSpec): Promise<Started> {
    const { pool, gate, logger } = this.#options;
    if (spec.imageId !== "") return gate.run(() => this.#start(spec, this.#imageOf(spec), "sandbox created"));
    const phases = new Phases();
    const makeup = this.#makeupOf(spec, undefined);
    const claimed = await pool.claim(makeup, { identity: identityOf(spec, undefined), allowInternetAccess: spec.allowInternetAccess });
    if (!claimed) return gate.run(() => this.#start(spec, pool.imageFor(makeup), "sandbox created"));
    const facts = { sandbox_id: spec.sandboxId, template_id: spec.templateId, runtime: makeup.runtime, start_kind: claimed.kind };
    logger.info({ ...facts, ...phases.fields() }, "sandbox created");
    return claimed;
  }

  /** From the image that it was paused to. Repeated after a success it answers the same. */
  async resume(spec: SandboxSpec): Promise<Started> {
    return this.#lock.run(checkedId(spec), async () => {
      const live = this.#live(spec.sandboxId);
      if (live?.record.state === "running" && live.record.imageId === spec.imageId) {
        return { record: live.record, kind: live.record.isRestored ? "restore" : "boot", memoryLostReason: "" };
      }
      if (live) throw new PlatformError("already_exists", `sandbox ${spec.sandboxId} exists`);
      const image = this.#imageOf(spec);
      await this.#untilGivenBack(image);
      const started = await this.#options.gate.run(() => this.#start(spec, image, "sandbox resumed"));
      await this.#options.containers.discardImage(image.imageId);
      crashPoint("resume.image-discarded");
      return started;
    });
  }

  async #start(spec: SandboxSpec, image: ImageRecord | undefined, message: string): Promise<Started> {
    const { starter, logger } = this.#options;
    const { sandboxId } = spec;
    const phases = new Phases();
    const makeup = this.#makeupOf(spec, image);
    const facts = { sandbox_id: sandboxId, template_id: spec.templateId, runtime: makeup.runtime };
    try {
      const started = await starter.start({
        // Its own name where it is free: what lies on the host is easier to read.
        containerId: this.#options.containers.get(sandboxId) ? this.#options.containers.newId() : sandboxId,
        sandboxId,
        makeup,
        identity: identityOf(spec, image),
        allowInternetAccess: spec.allowInternetAccess,
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

  /** Writes it to an image and ends it. On failure it runs as before, and there is no image. */
  async pause(request: PauseRequest): Promise<{ image: ImageRecord; sizeBytes: number }> {
    const { sandboxId, imageId } = request;
    return this.#lock.run(sandboxId, async () => {
      const written = this.#options.images.get(imageId);
      if (written && !this.#live(sandboxId)) return { image: written, sizeBytes: memoryBytes(written) };
      const live = this.#running(sandboxId);
      // Whoever comes from now on waits, and hears in the end that it is gone, or that it runs on.
      const image = await whileStandingStill(live, () => this.#pause(live, request));
      return { image, sizeBytes: memoryBytes(image) };
    });
  }

  async #pause({ record, connections }: LiveContainer, request: PauseRequest): Promise<ImageRecord> {
    const { deps, containers, writer, logger } = this.#options;
    const { sandboxId, imageId } = request;
    const phases = new Phases();
    const withMemory = request.memory && runtimeOf(deps.config, record.runtime).capabilities.checkpoint;
    const isHealthy = await isAgentHealthy(record.slot.addresses.guest, HEALTH_TIMEOUT_MS);
    if (!isHealthy && (request.requireHealthyGuest || !withMemory)) throw guestSilent(sandboxId);
    phases.mark("health");
    for (const socket of connections) socket.resetAndDestroy();
    const image = await writer.write({ record, imageId, kind: "pause", withMemory, agentUnresponsive: !isHealthy });
    phases.mark("write");
    // The image is what counts from here: whatever of this container can't be given back now is nobody's sandbox any more.
    const leftover: SandboxRecord = { ...record, sandboxId: "", state: "killing" };
    containers.set(leftover);
    crashPoint("pause.recorded");
    await destroyCgroup(record.cgroupPath);
    const givenBack = containers.tryToGiveBack(leftover).then(() => crashPoint("pause.given-back"));
    // Nothing of it runs: whoever paused it need not wait for the rest. Its next start does; and where only the same slot can
    // take its disk again, so does everybody.
    if (image.owner) await givenBack;
    const facts = { sandbox_id: sandboxId, image_id: imageId, with_memory: withMemory, size_bytes: memoryBytes(image) };
    logger.info({ ...facts, ...phases.fields() }, "sandbox paused");
    return image;
  }

  /** Writes an image of a sandbox that goes on, or of one that is paused in `sourceImageId`. */
  async snapshot(request: { sandboxId: string; imageId: string; memory: boolean; sourceImageId: string }): Promise<ImageRecord> {
    const { snapshots, images } = this.#options;
    return this.#lock.run(request.sandboxId, async () => {
      const written = images.get(request.imageId);
      if (written) return written;
      if (request.sourceImageId === "") return snapshots.ofRunning(this.#running(request.sandboxId), request);
      const source = images.get(request.sourceImageId);
      if (source?.kind !== "pause") throw new PlatformError("image_missing", `image ${request.sourceImageId} is not here`);
      await this.#untilGivenBack(source);
      return snapshots.ofPaused(source, request);
    });
  }

  /** Answers when it can't be used any more. False when there was none. */
  async deleteImage(imageId: string): Promise<boolean> {
    const { images, uses, containers } = this.#options;
    if (!images.get(imageId) && !images.damaged.has(imageId)) return false;
    await uses.settled(imageId);
    await containers.discardImage(imageId);
    return true;
  }

  /** Answers when nothing but files to delete is left. False when there was no such sandbox. Its images stay. */
  async kill(sandboxId: string): Promise<boolean> {
    return this.#lock.run(sandboxId, async () => {
      const live = this.#live(sandboxId);
      if (!live) return false;
      const phases = new Phases();
      await this.#options.containers.giveBack(live.record);
      this.#options.logger.info({ sandbox_id: sandboxId, ...phases.fields() }, "sandbox killed");
      return true;
    });
  }

  /** For one that a former daemon was moving onto a new disk. Nobody waits for it but its next callers. */
  continueSnapshot(live: LiveContainer): void {
    const { imageId = "" } = live.record;
    const image = this.#options.images.get(imageId);
    if (!image) return;
    const goingOn = this.#continue(live, () => this.#options.snapshots.goOnFrom(live, image));
    // From now on, and not only when its turn comes: the control plane, which restarts as well, deletes images that nobody asks for.
    void this.#options.uses.during(imageId, goingOn);
  }

  /** For one whose memory a former daemon had just brought back: it ran since, so the image that it came from must not be used again. */
  continueResume(live: LiveContainer): void {
    this.#continue(live, async () => {
      const { starter, containers } = this.#options;
      const { imageId = "" } = live.record;
      await starter.finish(live);
      await containers.discardImage(imageId);
    });
  }

  #continue(live: LiveContainer, work: () => Promise<void>): Promise<void> {
    const { sandboxId } = live.record;
    const standstill = this.#lock
      .run(sandboxId, work)
      .catch((error: unknown) => {
        this.#options.logger.error({ sandbox_id: sandboxId, err: asError(error) }, "sandbox did not go on after it was interrupted");
      })
      .finally(() => {
        live.standstill = undefined;
      });
    live.standstill = standstill;
    return standstill;
  }

  /** Stops watching; the sandboxes go on and are adopted by the next start. */
  async close(): Promise<void> {
    clearInterval(this.#watch);
    await this.#options.containers.close();
  }

  /**
   * Guests end their sandbox by ending its first process, and the host may run out of memory: then it is released here.
   * So is what a failed kill left.
   */
  #releaseEnded(): void {
    for (const live of this.#options.containers.all()) {
      const { containerId, sandboxId, state } = live.record;
      if (this.#releasing.has(containerId) || !this.#needsRelease(live)) continue;
      this.#options.logger.warn({ sandbox_id: sandboxId, container_id: containerId, state }, "sandbox ended by itself or was not released");
      const { containers } = this.#options;
      containers.unaskedEnds.add(sandboxId, containers.isOutOfMemory(live) ? "memory" : "exited");
      this.#releasing.add(containerId);
      this.#lock
        .run(sandboxId === "" ? containerId : sandboxId, async () => {
          // It may have been given back while this waited for its turn.
          if (this.#options.containers.get(containerId) === live && this.#needsRelease(live))
            await this.#options.containers.giveBack(live.record);
        })
        .catch((error: unknown) => {
          this.#options.logger.error({ sandbox_id: sandboxId, err: asError(error) }, "sandbox not released, will be tried again");
        })
        .finally(() => setTimeout(() => this.#releasing.delete(containerId), RETRY_RELEASE_MS).unref());
    }
  }

  #needsRelease({ record, ending }: LiveContainer): boolean {
    if (ending) return false;
    try {
      if (record.state === "killing") return true;
      return (record.state === "running" || record.state === "pooled") && !isSameProcess(record.process);
    } catch (error) {
      this.#options.logger.error({ sandbox_id: record.sandboxId, err: asError(error) }, "sandbox could not be looked at");
      return false;
    }
  }

  #live(sandboxId: string): LiveContainer | undefined {
    return this.#options.containers.ofSandbox(sandboxId);
  }

  #running(sandboxId: string): LiveContainer {
    const live = this.#live(sandboxId);
    if (live?.record.state !== "running") throw new PlatformError("sandbox_gone", `sandbox ${sandboxId} is not running on this node`);
    return live;
  }

  /** The container that was paused may still have its disk mounted. */
  async #untilGivenBack(image: ImageRecord): Promise<void> {
    const { containers } = this.#options;
    const before = containers.all().find(({ record }) => record.area === image.area);
    if (before) await containers.giveBack(before.record);
  }

  #imageOf(spec: SandboxSpec): ImageRecord {
    const image = this.#options.images.get(spec.imageId);
    if (!image) throw new PlatformError("image_missing", `image ${spec.imageId} is not on this machine`);
    return image;
  }

  #makeupOf(spec: SandboxSpec, image: ImageRecord | undefined): SandboxMakeup {
    const { agent } = this.#options.deps.config;
    const { templateId, buildId } = spec;
    if (image) {
      const { runtime, size, layers, frozenAreas } = image;
      const restores = image.memory !== undefined && !spec.withoutMemory;
      // Processes in an image have the agent's files of then open; a boot gets those of now.
      const agentDir = restores ? image.agentDir : agent.dir;
      return {
        runtime,
        templateId,
        buildId,
        size,
        layers,
        frozenAreas,
        agentDir,
        agentVersion: restores ? image.agentVersion : agent.version,
      };
    }
    return {
      runtime: runtimeOf(this.#options.deps.config, spec.runtime).name,
      templateId,
      buildId,
      size: { cpuCount: spec.cpuCount, memoryMb: spec.memoryMb, diskSizeMb: spec.diskSizeMb },
      layers: spec.layers,
      frozenAreas: [],
      agentDir: agent.dir,
      agentVersion: agent.version,
    };
  }
}

function identityOf(spec: SandboxSpec, image: ImageRecord | undefined): AgentIdentity {
  const { sandboxId, templateId, envVars, accessToken, defaultUser, defaultWorkdir, memoryMb } = spec;
  const before = image?.identity;
  return {
    sandboxId,
    templateId,
    envVars: { ...before?.envVars, ...envVars },
    accessToken,
    defaultUser: defaultUser || (before?.defaultUser ?? ""),
    defaultWorkdir: defaultWorkdir || (before?.defaultWorkdir ?? ""),
    memoryMb: image?.size.memoryMb ?? memoryMb,
  };
}

function checkedId({ sandboxId }: SandboxSpec): string {
  if (parseSandboxId(sandboxId) !== sandboxId || sandboxId === "")
    throw new PlatformError("invalid_argument", `not a sandbox id: ${sandboxId}`);
  return sandboxId;
}

function guestSilent(sandboxId: string): PlatformError {
  return new PlatformError("guest_unresponsive", `the agent of sandbox ${sandboxId} does not answer`, {
    publicMessage:
      "the sandbox's agent does not answer, so it was not paused; it runs on as before: try again, or pause it with its memory",
  });
}
