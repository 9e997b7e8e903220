// Sandboxes that are ready before anybody asks: up, with their agent listening, and nobody's. A create of the same template then
// only has to tell one whose it is. Where memory can be kept they are brought back from an image that is taken once of each
// template; that image also serves creates which find the pool empty.

import { setTimeout as sleep } from "node:timers/promises";
import { asError, type Logger, PlatformError } from "@skerry/base";
import { initialiseAgent } from "../agent/agent-client.ts";
import { agentWaitOf } from "../agent/agent-wait.ts";
import type { Containers } from "../containers/containers.ts";
import { isSameProcess } from "../containers/process-identity.ts";
import { crashPoint } from "../crash-points.ts";
import type { ImageStore } from "../images/image-store.privileged.ts";
import type { ImageWriter } from "../images/image-writer.ts";
import { hasHostMemory } from "../limits/host-memory.ts";
import type { NetworkPolicy } from "../network/network-policy.ts";
import type { ImageRecord } from "../records/image-record.ts";
import type { SandboxMakeup, SandboxRecord } from "../records/sandbox-record.ts";
import type { Owner } from "../sandboxes/owner.ts";
import type { StartGate } from "../sandboxes/start-gate.ts";
import type { Started, Starter } from "../sandboxes/starter.ts";
import { nobody, poolKeyOf, templateImageId } from "./pool-key.ts";

const CLAIM_TIMEOUT_MS = 5_000;
/** A template that nobody asked for in this time is not kept ready any more, but for the one that was asked for last. */
const RECENT_MS = 600_000;
/** Creates go first: filling waits until none is under way. */
const GIVE_WAY_MS = 20;
const RETRY_MS = 5_000;
/** What an idle one takes, measured; the budget is divided by it. */
const IDLE_BYTES = 40 * 1024 * 1024;

export interface WarmPoolOptions {
  /** Ready ones of each lately used template; 0: no pool. */
  readonly size: number;
  readonly memoryBudgetBytes: number;
  /**
   * How long a sandbox is left alone before its image is taken: an agent gives back what its start has left behind when it has had
   * nothing to do for three seconds. In the image, that would cost every sandbox memory, and 50 ms of a processor to give it back.
   */
  readonly settleMs: number;
  readonly policy: NetworkPolicy;
  readonly containers: Containers;
  readonly images: ImageStore;
  readonly starter: Starter;
  readonly writer: ImageWriter;
  readonly gate: StartGate;
  readonly fingerprintOf: (runtime: SandboxMakeup["runtime"]) => string;
  readonly keepsMemory: (runtime: SandboxMakeup["runtime"]) => boolean;
  readonly logger: Logger;
}

interface Entry {
  readonly key: string;
  readonly makeup: SandboxMakeup;
  readonly ready: SandboxRecord[];
  /** By a clock that nobody sets. */
  lastUsedMs: number;
}

export class WarmPool {
  readonly #options: WarmPoolOptions;
  readonly #entries = new Map<string, Entry>();
  #filling: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  /** How many are ready now. */
  get readyCount(): number {
    return [...this.#entries.values()].reduce((sum, { ready }) => sum + ready.length, 0);
  }

  /** Takes up the templates of which there are images, the newest first, as if each had just been used. */
  start(): void {
    for (const image of this.#options.images.list()) {
      if (image.kind !== "template") continue;
      const entry = this.#entryOf(image);
      if (templateImageId(entry.key) === image.imageId) entry.lastUsedMs = performance.now() - Math.max(0, Date.now() - image.createdAtMs);
      else {
        this.#entries.delete(entry.key);
        void this.#options.containers.discardImage(image.imageId).catch((error: unknown) => this.#complain(error));
      }
    }
    this.#fill();
  }

  /** A ready one, told whose it is; undefined when there is none. The template counts as used. */
  async claim(makeup: SandboxMakeup, owner: Owner): Promise<Started | undefined> {
    if (this.#options.size === 0) return undefined;
    const entry = this.#entryOf(makeup);
    entry.lastUsedMs = performance.now();
    try {
      for (let record = entry.ready.shift(); record; record = entry.ready.shift()) {
        const claimed = await this.#hand(record, owner, makeup);
        if (claimed) return { ...claimed, kind: "claim", memoryLostReason: "" };
      }
      return undefined;
    } finally {
      this.#fill();
    }
  }

  /** The image to bring a sandbox of this template back from, when there is one. */
  imageFor(makeup: SandboxMakeup): ImageRecord | undefined {
    if (this.#options.size === 0) return undefined;
    return this.#options.images.get(templateImageId(poolKeyOf(makeup, this.#options.fingerprintOf(makeup.runtime))));
  }

  /** Resolves when as many are ready as are wanted, or filling has failed. */
  async filled(): Promise<void> {
    await this.#filling;
  }

  /** Stops filling and gives back what is ready. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#filling;
    const ready = [...this.#entries.values()].flatMap((entry) => entry.ready.splice(0));
    await Promise.all(ready.map((record) => this.#options.containers.tryToGiveBack(record)));
  }

  async #hand(
    record: SandboxRecord,
    { identity, options }: Owner,
    makeup: SandboxMakeup,
  ): Promise<Pick<Started, "record" | "hooksRun"> | undefined> {
    const { containers, policy, logger } = this.#options;
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
      const { hooksRun } = await initialiseAgent({
        ...agentWaitOf(record, { isRestored: true }),
        timeoutMs: CLAIM_TIMEOUT_MS,
        identity,
        currentToken: "",
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
    const key = poolKeyOf(makeup, this.#options.fingerprintOf(makeup.runtime));
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = { key, makeup, ready: [], lastUsedMs: Number.NEGATIVE_INFINITY };
      this.#entries.set(key, entry);
    }
    return entry;
  }

  #fill(): void {
    if (this.#isClosed || this.#options.size === 0) return;
    this.#filling ??= this.#work()
      .catch(async (error: unknown) => {
        this.#complain(error);
        await this.#rest(RETRY_MS);
      })
      .finally(() => {
        this.#filling = undefined;
      });
  }

  async #work(): Promise<void> {
    for (let entry = this.#next(); entry && !this.#isClosed; entry = this.#next()) {
      while (!this.#options.gate.isIdle && !this.#isClosed) await sleep(GIVE_WAY_MS);
      // What is ready beforehand must not cost what runs; the next create tries again.
      if (this.#isClosed || !hasHostMemory()) return;
      if (this.#options.keepsMemory(entry.makeup.runtime) && !this.#image(entry)) await this.#takeImage(entry);
      else await this.#add(entry);
    }
    await this.#drain();
  }

  /** The lately used template that has the fewest ready of what it should have. */
  #next(): Entry | undefined {
    return [...this.#entries.values()]
      .filter((entry) => entry.ready.length < this.#target(entry))
      .sort((a, b) => a.ready.length - b.ready.length || b.lastUsedMs - a.lastUsedMs)[0];
  }

  /** The budget is shared by the lately used templates. */
  #target(entry: Entry): number {
    const { size, memoryBudgetBytes } = this.#options;
    const now = performance.now();
    const recent = [...this.#entries.values()].filter((one) => now - one.lastUsedMs < RECENT_MS);
    const affordable = Math.floor(memoryBudgetBytes / IDLE_BYTES / Math.max(1, recent.length));
    if (recent.includes(entry)) return Math.min(size, affordable);
    const latest = Math.max(...[...this.#entries.values()].map(({ lastUsedMs }) => lastUsedMs));
    return recent.length === 0 && entry.lastUsedMs === latest ? Math.min(1, affordable) : 0;
  }

  async #drain(): Promise<void> {
    for (const entry of this.#entries.values()) {
      for (const record of entry.ready.splice(this.#target(entry))) await this.#options.containers.tryToGiveBack(record);
      if (this.#target(entry) === 0 && performance.now() - entry.lastUsedMs > RECENT_MS) this.#entries.delete(entry.key);
    }
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Shorter when the pool is closed meanwhile. */
  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined);
  }

  #image(entry: Entry): ImageRecord | undefined {
    return this.#options.images.get(templateImageId(entry.key));
  }

  async #add(entry: Entry): Promise<void> {
    const image = this.#image(entry);
    const { record, memoryLostReason } = await this.#start(entry, image);
    if (image && memoryLostReason !== "") await this.#options.containers.discardImage(image.imageId);
    entry.ready.push(record);
    this.#options.logger.debug(
      { container_id: record.containerId, build_id: entry.makeup.buildId, ready: entry.ready.length },
      "a sandbox is ready",
    );
  }

  async #takeImage(entry: Entry): Promise<void> {
    const { writer, containers, logger } = this.#options;
    const { record } = await this.#start(entry, undefined);
    try {
      await this.#rest(this.#options.settleMs);
      if (this.#isClosed) return;
      await writer.write({ record, imageId: templateImageId(entry.key), kind: "template", withMemory: true, agentUnresponsive: false });
      logger.info({ template_id: entry.makeup.templateId, build_id: entry.makeup.buildId }, "image of a template taken");
    } finally {
      await containers.tryToGiveBack(record);
    }
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

  #complain(error: unknown): void {
    this.#options.logger.error({ err: asError(error) }, "the pool of ready sandboxes could not be filled, will be tried again");
  }
}
