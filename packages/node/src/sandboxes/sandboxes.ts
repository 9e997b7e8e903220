// The sandboxes of this machine: create, kill, find, and notice when one ends by itself. Calls for one sandbox take turns.

import { asError, type Logger, PlatformError, type RelaySocket } from "@skerry/base";
import { parseSandboxId } from "@skerry/wire";
import type { SandboxSpec } from "@skerry/wire/node";
import type { SlotPool } from "../network/slot-pool.privileged.ts";
import { initialiseAgent } from "./agent-client.ts";
import { cgroupPathOf, type HostDeps, release, runtimeOf, takeAndStart } from "./host.privileged.ts";
import { type SandboxRecord, writeRecord } from "./journal.privileged.ts";
import { KeyedLock } from "./keyed-lock.ts";
import { isSameProcess, processStartTime } from "./process-identity.ts";
import { emptyTrash } from "./recover.privileged.ts";
import type { StartGate } from "./start-gate.ts";

const AGENT_TIMEOUT_MS = 30_000;
const WATCH_INTERVAL_MS = 500;
const RETRY_RELEASE_MS = 5_000;

interface LiveSandbox {
  record: SandboxRecord;
  /** Connections that this node has open into the sandbox: nothing else would tell their peers that it is gone. */
  readonly connections: Set<RelaySocket>;
}

export interface SandboxesOptions {
  readonly deps: HostDeps;
  readonly pools: { readonly plain: SlotPool; readonly withUserNamespace: SlotPool };
  readonly gate: StartGate;
  readonly logger: Logger;
}

export class Sandboxes {
  readonly #options: SandboxesOptions;
  readonly #live = new Map<string, LiveSandbox>();
  readonly #lock = new KeyedLock();
  /** Being given back at this moment. */
  readonly #destroying = new Set<string>();
  /** Given back by the watch, or tried a moment ago. */
  readonly #releasing = new Set<string>();
  #watch: NodeJS.Timeout | undefined;
  #cleaning: Promise<void> = Promise.resolve();

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  adopt(records: readonly SandboxRecord[]): void {
    for (const record of records) this.#live.set(record.sandboxId, { record, connections: new Set() });
    this.#watch = setInterval(() => this.#releaseEnded(), WATCH_INTERVAL_MS);
    this.#watch.unref();
  }

  list(): SandboxRecord[] {
    return [...this.#live.values()].map(({ record }) => record);
  }

  /** Address of a running sandbox; PlatformError("sandbox_gone") otherwise. Register connections made to it with `track`. */
  addressOf(sandboxId: string): string {
    return this.#running(sandboxId).record.slot.addresses.guest;
  }

  /** Ties a connection to a sandbox: it is reset when the sandbox ends. */
  track(sandboxId: string, socket: RelaySocket): void {
    const { connections } = this.#running(sandboxId);
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  }

  async create(spec: SandboxSpec): Promise<SandboxRecord> {
    const sandboxId = parseSandboxId(spec.sandboxId);
    if (!sandboxId || sandboxId !== spec.sandboxId) throw new PlatformError("invalid_argument", `not a sandbox id: ${spec.sandboxId}`);
    return this.#lock.run(sandboxId, async () => {
      if (this.#live.has(sandboxId)) throw new PlatformError("already_exists", `sandbox ${sandboxId} exists`);
      return this.#options.gate.run(() => this.#create(spec));
    });
  }

  async #create(spec: SandboxSpec): Promise<SandboxRecord> {
    const { deps, logger } = this.#options;
    const { sandboxId } = spec;
    const runtime = runtimeOf(deps.config, spec.runtime);
    const phases = new Phases();
    const slot = await this.#poolOf(runtime.capabilities.userNamespace).acquire();
    phases.mark("slot");
    const creating: SandboxRecord = {
      version: 1,
      sandboxId,
      state: "creating",
      runtime: runtime.name,
      slot,
      cgroupPath: cgroupPathOf(deps.config.instance, sandboxId),
      templateId: spec.templateId,
      buildId: spec.buildId,
      layers: spec.layers,
      allowInternetAccess: spec.allowInternetAccess,
      agentVersion: deps.config.agent.version,
      createdAtMs: Date.now(),
    };
    this.#live.set(sandboxId, { record: creating, connections: new Set() });
    try {
      const { pid } = await takeAndStart(deps, creating, spec);
      phases.mark("runtime");
      const startTime = processStartTime(pid);
      if (startTime === undefined) throw new PlatformError("runtime_failed", `sandbox ${sandboxId} ended as soon as it started`);
      await initialiseAgent({
        address: slot.addresses.guest,
        identity: spec,
        timeoutMs: AGENT_TIMEOUT_MS,
        isAlive: () => processStartTime(pid) === startTime,
      });
      phases.mark("agent");
      const record: SandboxRecord = { ...creating, state: "running", process: { pid, startTime } };
      this.#setRecord(record);
      logger.info({ sandbox_id: sandboxId, template_id: spec.templateId, runtime: runtime.name, ...phases.fields() }, "sandbox created");
      return record;
    } catch (error) {
      logger.error({ sandbox_id: sandboxId, runtime: runtime.name, err: asError(error), ...phases.fields() }, "sandbox not created");
      // A release that fails is tried again by the watch; the caller hears why there is no sandbox.
      await this.#destroy(creating).catch((cause: unknown) => {
        logger.error({ sandbox_id: sandboxId, err: asError(cause) }, "sandbox not released, will be tried again");
      });
      throw error;
    }
  }

  /** Answers when nothing but files to delete is left. False when there was no such sandbox. */
  async kill(sandboxId: string): Promise<boolean> {
    return this.#lock.run(sandboxId, async () => {
      const live = this.#live.get(sandboxId);
      if (!live) return false;
      const startedAt = performance.now();
      await this.#destroy(live.record);
      this.#options.logger.info({ sandbox_id: sandboxId, duration_ms: elapsed(startedAt) }, "sandbox killed");
      return true;
    });
  }

  /** Stops watching; the sandboxes go on and are adopted by the next start. */
  async close(): Promise<void> {
    clearInterval(this.#watch);
    await this.#cleaning;
  }

  async #destroy(record: SandboxRecord): Promise<void> {
    this.#destroying.add(record.sandboxId);
    try {
      await this.#giveBack(record);
    } finally {
      this.#destroying.delete(record.sandboxId);
    }
  }

  async #giveBack(record: SandboxRecord): Promise<void> {
    const { deps, logger } = this.#options;
    const live = this.#live.get(record.sandboxId);
    this.#setRecord({ ...record, state: "killing" });
    for (const socket of live?.connections ?? []) socket.resetAndDestroy();
    await release(deps, record.sandboxId, record.runtime);
    await this.#poolOf(record.slot.userNamespace !== undefined).release(record.slot, { internetBlocked: !record.allowInternetAccess });
    this.#live.delete(record.sandboxId);
    this.#cleaning = this.#cleaning.then(() => emptyTrash(deps.paths, logger));
  }

  /** A record whose folder is not there yet or no more is kept in memory alone. */
  #setRecord(record: SandboxRecord): void {
    const live = this.#live.get(record.sandboxId);
    if (live) live.record = record;
    try {
      writeRecord(this.#options.deps.paths, record);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }

  /**
   * Guests end their sandbox by ending its first process, and the host may run out of memory: then it is released here.
   * So is what a failed kill left.
   */
  #releaseEnded(): void {
    for (const { record } of this.#live.values()) {
      const { sandboxId } = record;
      if (this.#releasing.has(sandboxId) || !this.#needsRelease(record)) continue;
      this.#options.logger.warn({ sandbox_id: sandboxId, state: record.state }, "sandbox ended by itself or was not released");
      this.#releasing.add(sandboxId);
      this.kill(sandboxId)
        .catch((error: unknown) => {
          this.#options.logger.error({ sandbox_id: sandboxId, err: asError(error) }, "sandbox not released, will be tried again");
        })
        .finally(() => setTimeout(() => this.#releasing.delete(sandboxId), RETRY_RELEASE_MS).unref());
    }
  }

  #needsRelease(record: SandboxRecord): boolean {
    if (record.state === "creating" || this.#destroying.has(record.sandboxId)) return false;
    try {
      return record.state === "killing" || !isSameProcess(record.process);
    } catch (error) {
      this.#options.logger.error({ sandbox_id: record.sandboxId, err: asError(error) }, "sandbox could not be looked at");
      return false;
    }
  }

  #running(sandboxId: string): LiveSandbox {
    const live = this.#live.get(sandboxId);
    if (live?.record.state !== "running") throw new PlatformError("sandbox_gone", `sandbox ${sandboxId} is not running on this node`);
    return live;
  }

  #poolOf(userNamespace: boolean): SlotPool {
    return userNamespace ? this.#options.pools.withUserNamespace : this.#options.pools.plain;
  }
}

/** Named durations of one operation, in milliseconds, for its log line. */
class Phases {
  readonly #fields: Record<string, number> = {};
  readonly #startedAt = performance.now();
  #last = this.#startedAt;

  mark(name: string): void {
    const now = performance.now();
    this.#fields[`${name}_ms`] = elapsed(this.#last, now);
    this.#last = now;
  }

  fields(): Record<string, number> {
    return { ...this.#fields, duration_ms: elapsed(this.#startedAt) };
  }
}

function elapsed(since: number, now = performance.now()): number {
  return Math.round((now - since) * 10) / 10;
}
