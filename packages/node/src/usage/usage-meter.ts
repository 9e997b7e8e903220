// Measures what the running sandboxes use, every five seconds. It reads files of the host's cgroups and file systems alone: no guest is asked,
// and none can change the result. The API collects the rounds.
//
// Failure policy: a sandbox that cannot be measured, because it is just ending, is missing in the round.

import { setTimeout as sleep } from "node:timers/promises";
import { asError, type Logger } from "@skerry/base";
import { CpuGroup, MemoryGroup } from "@skerry/runtime";
import type { Containers } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { cpuPercent } from "./cpu-percent.ts";

export const ROUND_MS = 5_000;
/** Ten minutes: as long as the API or its database may be away before measurements are lost. */
const ROUNDS_KEPT = 120;
const MIB = 1024 * 1024;

export interface SandboxUsage {
  readonly sandboxId: string;
  readonly cpuCount: number;
  readonly cpuPercent: number;
  readonly memoryUsedBytes: number;
  readonly memoryTotalBytes: number;
  readonly memoryCacheBytes: number;
  readonly diskUsedBytes: number;
  readonly diskTotalBytes: number;
}

export interface UsageRound {
  readonly atMs: number;
  readonly sandboxes: readonly SandboxUsage[];
}

interface Meter {
  readonly cpu: CpuGroup;
  readonly memory: MemoryGroup;
  /** At first, the start of the container. */
  before: { readonly atMs: number; readonly cpuSeconds: number };
}

export interface UsageMeterDeps {
  readonly containers: Pick<Containers, "all">;
  readonly areas: Pick<HostDeps["areas"], "space">;
  readonly logger: Logger;
}

export class UsageMeter {
  readonly #deps: UsageMeterDeps;
  readonly #meters = new Map<string, Meter>();
  #rounds: UsageRound[] = [];
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  constructor(deps: UsageMeterDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#stop = new AbortController();
    this.#running = this.#run(this.#stop.signal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    for (const key of [...this.#meters.keys()]) this.#forget(key);
  }

  /** The oldest rounds after a time, at most `limit`. */
  after(atMs: number, limit: number): readonly UsageRound[] {
    const from = this.#rounds.findIndex((round) => round.atMs > atMs);
    return from < 0 ? [] : this.#rounds.slice(from, from + limit);
  }

  /** Measures now. Rounds run by themselves after `start`. */
  async measure(): Promise<UsageRound> {
    const atMs = Date.now();
    const running = this.#deps.containers
      .all()
      .filter(({ record, build }) => record.sandboxId !== "" && !build && record.state !== "creating" && record.state !== "killing")
      .map(({ record }) => record);
    const known = new Set(running.map(({ containerId }) => containerId));
    for (const key of [...this.#meters.keys()]) if (!known.has(key)) this.#forget(key);
    const measured = await Promise.all(running.map((record) => this.#read(record)));
    const round = { atMs, sandboxes: measured.filter((usage) => usage !== undefined) };
    this.#rounds.push(round);
    // A clock that was set back must not hide the rounds from then on.
    this.#rounds = this.#rounds.filter((one) => one.atMs <= atMs).slice(-ROUNDS_KEPT);
    return round;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // On multiples of five seconds, so that rounds of several nodes fall together.
      await sleep(ROUND_MS - (Date.now() % ROUND_MS), undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      await this.measure().catch((error: unknown) => this.#deps.logger.warn({ err: asError(error) }, "measuring the sandboxes failed"));
    }
  }

  async #read(record: SandboxRecord): Promise<SandboxUsage | undefined> {
    const { containerId, sandboxId, size } = record;
    try {
      const meter = this.#meterOf(record);
      const now = { atMs: Date.now(), cpuSeconds: meter.cpu.usedSeconds() };
      const percent = cpuPercent(meter.before, now, size.cpuCount);
      meter.before = now;
      const total = size.memoryMb * MIB;
      const held = meter.memory.heldBytes();
      const cache = Math.max(0, meter.memory.usageBytes() - held);
      const disk = await this.#deps.areas.space(record.area);
      return {
        sandboxId,
        cpuCount: size.cpuCount,
        cpuPercent: percent,
        // The cgroup includes the runtime, which may use memory beyond that of the guest.
        memoryUsedBytes: Math.min(held, total),
        memoryTotalBytes: total,
        memoryCacheBytes: cache,
        diskUsedBytes: disk.usedBytes,
        diskTotalBytes: disk.totalBytes,
      };
    } catch {
      this.#forget(containerId);
      return undefined;
    }
  }

  /** A snapshot replaces the cgroup of its sandbox, and the files of the former one read 0 from then on. */
  #meterOf(record: SandboxRecord): Meter {
    const known = this.#meters.get(record.containerId);
    if (known && known.cpu.usedSeconds() > 0) return known;
    this.#forget(record.containerId);
    return this.#open(record, known?.before.atMs ?? record.createdAtMs);
  }

  #open({ containerId, cgroupPath }: SandboxRecord, sinceMs: number): Meter {
    const cpu = CpuGroup.open(cgroupPath);
    try {
      const meter = { cpu, memory: MemoryGroup.open(cgroupPath), before: { atMs: sinceMs, cpuSeconds: 0 } };
      this.#meters.set(containerId, meter);
      return meter;
    } catch (error) {
      cpu.close();
      throw error;
    }
  }

  #forget(containerId: string): void {
    const meter = this.#meters.get(containerId);
    this.#meters.delete(containerId);
    meter?.cpu.close();
    meter?.memory.close();
  }
}
