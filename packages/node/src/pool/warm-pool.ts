// Keeps sandboxes ready for creates. A ready sandbox runs, its agent listens, and it belongs to no caller. A create of the same template claims
// one by sending its identity to the agent. On a runtime that keeps memory, ready sandboxes are restored from an image that the node takes once
// of each template. Creates that find the pool empty start from this image too.

import { setTimeout as sleep } from "node:timers/promises";
import { asError, type Logger, PlatformError } from "@skerry/base";
import { untraced } from "@skerry/telemetry";
import { initialiseAgent } from "../agent/agent-client.ts";
import { agentWaitOf } from "../agent/agent-wait.ts";
import type { NodeConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import { isSameProcess } from "../containers/process-identity.ts";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import { hasHostMemory } from "../limits/host-memory.ts";
import { poolClaims } from "../metrics.ts";
import type { NetworkPolicy } from "../network/network-policy.ts";
import { siteFor } from "../network/site-network.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxMakeup, SandboxRecord } from "../records/sandbox-record.ts";
import type { Owner } from "../sandboxes/owner.ts";
import { bringUpBooted } from "../sandboxes/start-command.ts";
import type { StartGate } from "../sandboxes/start-gate.ts";
import type { Started, Starter } from "../sandboxes/starter.ts";
import { makeupOfImage, nobody, templateImageId } from "./pool-key.ts";
import type { TemplateImages } from "./template-images.ts";

/** How long a claimed agent may take to accept its identity. Then another ready sandbox is tried. */
const CLAIM_TIMEOUT_MS = 5_000;
/** How long sandboxes of a template are kept ready after its last create. The most recent template keeps one beyond that. */
const RECENT_MS = 600_000;
/** Interval at which filling checks whether creates are running. Creates have priority. */
const GIVE_WAY_MS = 20;
/** Pause of a template after its first failure. It doubles with each further one, up to RECENT_MS. */
const RETRY_MS = 5_000;
/** How long the ready command of a template may take when its image is taken again. */
const READY_MS = 600_000;
/** Memory of an idle sandbox, measured. The memory budget is divided by it. */
const IDLE_BYTES = 40 * 1024 * 1024;

export interface WarmPoolOptions {
  /** Ready sandboxes for each recently used template. 0: no pool. */
  readonly size: number;
  readonly memoryBudgetBytes: number;
  readonly policy: NetworkPolicy;
  readonly config: Pick<NodeConfig, "site">;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly starter: Starter;
  readonly templateImages: TemplateImages;
  readonly gate: StartGate;
  /** The agent of new sandboxes. */
  readonly agent: SandboxMakeup["agent"];
  readonly logger: Logger;
}

interface Entry {
  readonly key: string;
  readonly makeup: SandboxMakeup;
  readonly ready: SandboxRecord[];
  /** Monotonic clock. */
  lastUsedMs: number;
  /** When its image could not be taken the last time. Monotonic clock. */
  imageFailedMs: number;
  /** In a row, to take its image or to make a sandbox ready. */
  failures: number;
  /** Until when it is left out after a failure. Monotonic clock. */
  restsUntilMs: number;
  /** Images of the same template that were made with another runtime or agent. They go when there is a new one. */
  readonly formerImages: string[];
}

export class WarmPool {
  readonly #options: WarmPoolOptions;
  readonly #entries = new Map<string, Entry>();
  #filling: Promise<void> | undefined;
  /** Something may have to be filled that the filling under way has not seen. */
  #isWanted = false;
  #retry: NodeJS.Timeout | undefined;
  readonly #closing = new AbortController();

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  /** The number of ready sandboxes. */
  get readyCount(): number {
    return [...this.#entries.values()].reduce((sum, { ready }) => sum + ready.length, 0);
  }

  /** Fills the pool for the templates that have images, as if each was used when its image was taken. */
  start(): void {
    const { images, templateImages, agent, size } = this.#options;
    for (const image of images.list()) {
      if (image.kind !== "template") continue;
      const makeup = { ...makeupOfImage(image), agent };
      const isCurrent = templateImageId(templateImages.keyOf(makeup)) === image.imageId;
      if (isCurrent && (size > 0 || image.start))
        this.#entryOf(makeup).lastUsedMs = performance.now() - Math.max(0, Date.now() - image.createdAtMs);
      else if (!isCurrent && image.start) this.#entryOf(makeup).formerImages.push(image.imageId);
      else if (!isCurrent) void this.#discard(image.imageId).catch((error: unknown) => this.#complain(error));
    }
    this.#fill();
  }

  /**
   * Assigns a ready sandbox to its owner. Returns undefined when there is none. Marks the template as used. A sandbox with volumes is booted: a
   * ready sandbox can get no mount, and gVisor restores an image only with the mounts that it was made with.
   */
  async claim(makeup: SandboxMakeup, owner: Owner): Promise<Started | undefined> {
    if ((this.#options.size === 0 && !makeup.start) || makeup.volumes) return undefined;
    const entry = this.#entryOf(makeup);
    entry.lastUsedMs = performance.now();
    // It is used, so it is worth another try soon.
    entry.failures = Math.min(entry.failures, 1);
    entry.restsUntilMs = Math.min(entry.restsUntilMs, entry.lastUsedMs + RETRY_MS);
    try {
      for (let record = entry.ready.shift(); record; record = entry.ready.shift()) {
        const claimed = await this.#hand(record, owner, makeup);
        if (!claimed) continue;
        poolClaims.inc({ result: "hit" });
        return { ...claimed, kind: "claim", memoryLostReason: "" };
      }
      poolClaims.inc({ result: "miss" });
      return undefined;
    } finally {
      this.#fill();
    }
  }

  /** For a template that is gone: gives back the ready sandboxes that lie on this layer, and discards the images of their templates. */
  async forget(layer: string): Promise<void> {
    const { containers, images } = this.#options;
    const forgotten = [...this.#entries.values()].filter(({ makeup }) => makeup.layers.includes(layer));
    for (const { key } of forgotten) this.#entries.delete(key);
    for (const record of forgotten.flatMap(({ ready }) => ready.splice(0))) await containers.tryToGiveBack(record);
    for (const { imageId, kind, layers } of images.list()) {
      if (kind === "template" && layers.includes(layer)) await containers.discardImage(imageId);
    }
  }

  /** The image from which a sandbox of this template can be restored; undefined when there is none. */
  imageFor(makeup: SandboxMakeup): ImageRecord | undefined {
    if ((this.#options.size === 0 && !makeup.start) || makeup.volumes) return undefined;
    return this.#options.templateImages.of(makeup);
  }

  /** Stops filling, and releases the ready sandboxes. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#retry);
    await this.#filling;
    const ready = [...this.#entries.values()].flatMap((entry) => entry.ready.splice(0));
    await Promise.all(ready.map((record) => this.#options.containers.tryToGiveBack(record)));
  }

  async #hand(
    record: SandboxRecord,
    { identity, options, secrets }: Owner,
    makeup: SandboxMakeup,
  ): Promise<Pick<Started, "record" | "hooksRun"> | undefined> {
    const { containers, policy, config, logger } = this.#options;
    const owned: SandboxRecord = {
      ...record,
      sandboxId: identity.sandboxId,
      state: "running",
      templateId: makeup.templateId,
      buildId: makeup.buildId,
      identity,
      options,
      createdAtMs: Date.now(),
    };
    try {
      if (!isSameProcess(record.process)) throw new PlatformError("sandbox_gone", "a ready sandbox has ended");
      await policy.apply(record.slot, options);
      policy.provide(record.slot, secrets);
      const authority = await policy.authorityOf(record.slot);
      const { hooksRun } = await initialiseAgent({
        ...agentWaitOf(record, { isRestored: true }),
        timeoutMs: CLAIM_TIMEOUT_MS,
        identity,
        currentToken: "",
        site: siteFor(config, { image: { kind: "template" }, isRestored: true, authority }),
      });
      crashPoint("claim.agent-told");
      containers.set(owned);
      crashPoint("claim.recorded");
      return { record: owned, hooksRun };
    } catch (error) {
      logger.warn({ container_id: record.containerId, err: asError(error) }, "a ready sandbox could not be used");
      await containers.tryToGiveBack(record);
      return undefined;
    }
  }

  #entryOf(makeup: SandboxMakeup): Entry {
    const key = this.#options.templateImages.keyOf(makeup);
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = {
        key,
        makeup,
        ready: [],
        lastUsedMs: Number.NEGATIVE_INFINITY,
        imageFailedMs: Number.NEGATIVE_INFINITY,
        failures: 0,
        restsUntilMs: Number.NEGATIVE_INFINITY,
        formerImages: [],
      };
      this.#entries.set(key, entry);
    }
    return entry;
  }

  #fill(): void {
    if (this.#isClosed) return;
    this.#isWanted = true;
    this.#filling ??= untraced(() => this.#fillWhileWanted());
  }

  async #fillWhileWanted(): Promise<void> {
    while (this.#isWanted && !this.#isClosed) {
      this.#isWanted = false;
      const waitMs = await this.#work().catch((error: unknown) => {
        this.#complain(error);
        return RETRY_MS;
      });
      clearTimeout(this.#retry);
      if (waitMs !== undefined && !this.#isClosed) this.#retry = setTimeout(() => this.#fill(), waitMs).unref();
    }
    // There is no await between the last look and this. So no create's wish gets lost.
    this.#filling = undefined;
  }

  /** Fills the pool as far as it can be filled now. Returns after how many ms it should be tried again; undefined when it is full. */
  async #work(): Promise<number | undefined> {
    for (let entry = this.#next(); entry && !this.#isClosed; entry = this.#next()) {
      while (!this.#options.gate.isIdle && !this.#isClosed) await sleep(GIVE_WAY_MS);
      // Ready sandboxes must not take memory from running ones.
      if (this.#isClosed || !hasHostMemory()) return RETRY_MS;
      await this.#extend(entry);
    }
    await this.#drain();
    const now = performance.now();
    const waits = [...this.#entries.values()]
      .filter((one) => this.#isShort(one))
      .map(({ restsUntilMs }) => Math.max(0, restsUntilMs - now));
    return waits.length > 0 ? Math.min(...waits) : undefined;
  }

  async #extend(entry: Entry): Promise<void> {
    try {
      if (this.#lacksImage(entry)) await this.#takeImage(entry);
      else await this.#add(entry);
      entry.failures = 0;
    } catch (error) {
      // A template that is gone needs nothing any more.
      if (this.#isClosed || this.#entries.get(entry.key) !== entry) return;
      const retryMs = Math.min(RETRY_MS * 2 ** entry.failures, RECENT_MS);
      entry.restsUntilMs = performance.now() + retryMs;
      entry.failures += 1;
      this.#complain(error, { template_id: entry.makeup.templateId, build_id: entry.makeup.buildId, retry_ms: retryMs });
    }
  }

  /** The recently used template that has the fewest ready sandboxes and needs more, apart from those that rest after a failure. */
  #next(): Entry | undefined {
    const now = performance.now();
    return [...this.#entries.values()]
      .filter((entry) => entry.restsUntilMs <= now && this.#isShort(entry))
      .sort((a, b) => a.ready.length - b.ready.length || b.lastUsedMs - a.lastUsedMs)[0];
  }

  #isShort(entry: Entry): boolean {
    return entry.ready.length < this.#target(entry) || this.#needsImage(entry);
  }

  /** An image that could not be taken is not tried again for a while if that runs a command of the template. */
  #lacksImage({ makeup, imageFailedMs }: Entry): boolean {
    const { templateImages } = this.#options;
    if (!templateImages.keepsMemory(makeup) || templateImages.of(makeup)) return false;
    return !makeup.start || performance.now() - imageFailedMs > RECENT_MS;
  }

  /** A template with a start command has an image even if no sandbox of it is kept ready: booting it takes long. */
  #needsImage(entry: Entry): boolean {
    return entry.makeup.start !== undefined && this.#lacksImage(entry);
  }

  /** How many sandboxes of a template should be ready. Recently used templates share the memory budget. */
  #target(entry: Entry): number {
    const { size, memoryBudgetBytes } = this.#options;
    const now = performance.now();
    const recent = [...this.#entries.values()].filter((one) => now - one.lastUsedMs < RECENT_MS);
    const affordable = Math.floor(memoryBudgetBytes / IDLE_BYTES / Math.max(1, recent.length));
    if (recent.includes(entry)) return Math.min(size, affordable);
    const latest = Math.max(...[...this.#entries.values()].map(({ lastUsedMs }) => lastUsedMs));
    return recent.length === 0 && entry.lastUsedMs === latest ? Math.min(1, size, affordable) : 0;
  }

  async #drain(): Promise<void> {
    for (const entry of this.#entries.values()) {
      for (const record of entry.ready.splice(this.#target(entry))) await this.#options.containers.tryToGiveBack(record);
      if (this.#target(entry) === 0 && !this.#needsImage(entry) && performance.now() - entry.lastUsedMs > RECENT_MS)
        this.#entries.delete(entry.key);
    }
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #add(entry: Entry): Promise<void> {
    const image = this.#options.templateImages.of(entry.makeup);
    const { record, memoryLostReason } = await this.#start(entry, image);
    if (image && memoryLostReason !== "") await this.#options.containers.discardImage(image.imageId);
    await bringUpBooted(this.#options, record.containerId);
    if (this.#entries.get(entry.key) !== entry) return await this.#options.containers.tryToGiveBack(record);
    entry.ready.push(record);
    this.#options.logger.debug(
      { container_id: record.containerId, build_id: entry.makeup.buildId, ready: entry.ready.length },
      "a sandbox is ready",
    );
  }

  async #takeImage(entry: Entry): Promise<void> {
    try {
      await this.#options.templateImages.take(entry.makeup, { readyMs: READY_MS, signal: this.#closing.signal });
    } catch (error) {
      entry.imageFailedMs = performance.now();
      throw error;
    }
    for (const imageId of entry.formerImages.splice(0)) await this.#discard(imageId);
  }

  #discard(imageId: string): Promise<void> {
    return this.#options.containers.discardImage(imageId);
  }

  #start(entry: Entry, image: ImageRecord | undefined): Promise<Started> {
    const { starter, containers } = this.#options;
    const { makeup } = entry;
    return starter.start({
      containerId: containers.newId(),
      sandboxId: "",
      makeup,
      ...nobody(makeup),
      ...(image ? { image } : {}),
      withMemory: true,
    });
  }

  #complain(error: unknown, about: object = {}): void {
    this.#options.logger.error({ ...about, err: asError(error) }, "the pool of ready sandboxes could not be filled; will be tried again");
  }
}
