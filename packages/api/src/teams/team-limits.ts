// What a team may do. The rest of the API asks this module, and does not know where a limit comes from: from the team's own limits, from its
// tier, or from the settings of the platform. Each call reads them from the database, so a change takes effect with the next request of every
// process. What is counted is counted by the store, in the transaction that adds to it.

import { PlatformError } from "@skerry/base";
import type { LimitName, LimitRepository, SandboxLimits, SandboxSize } from "@skerry/store";
import type { NetworkLimits } from "@skerry/wire/node";
import { invalid, publicError } from "../errors.ts";
import { LARGEST_SANDBOX, LIMITS, type Limits } from "./limits.ts";

const HOUR_MS = 3_600_000;

/** What clients look for comes first; the value, and the name of the limit for the operator, follow. */
const REACHED: Partial<Record<LimitName, string>> = {
  sandboxes: "you have reached the maximum number of concurrent E2B sandboxes",
  cpu: "you have reached the maximum number of vCPUs of concurrent sandboxes",
  memoryMb: "you have reached the maximum memory of concurrent sandboxes in MiB",
  diskMb: "you have reached the maximum disk size of all your sandboxes in MiB",
  builds: "you have reached the maximum number of concurrent template builds",
  snapshots: "you have reached the maximum number of snapshots",
  volumes: "you have reached the maximum number of volumes",
  volumeMb: "you have reached the maximum size of all your volumes in MiB",
};

export interface TeamLimitsDeps {
  readonly repository: Pick<LimitRepository, "ofTeam">;
  /** The limits of teams without a tier. */
  readonly defaults: Limits;
}

export class TeamLimits {
  readonly #deps: TeamLimitsDeps;
  constructor(deps: TeamLimitsDeps) {
    this.#deps = deps;
  }

  /** The limits of a team now. */
  async of(teamId: string): Promise<Limits> {
    const { tier, overrides } = await this.#deps.repository.ofTeam(teamId);
    return { ...this.#deps.defaults, ...tier?.limits, ...overrides };
  }

  /** Throws when no sandbox of the team may run for so long. */
  async assertTimeout(teamId: string, seconds: number): Promise<void> {
    const { timeoutHours } = await this.of(teamId);
    if (timeoutHours !== null && seconds * 1000 > timeoutHours * HOUR_MS) {
      throw invalid(`Timeout cannot be greater than ${timeoutHours} hours`);
    }
  }

  /** Throws when the forks and their sandbox would be more than the team may run. */
  async assertForks(teamId: string, count: number): Promise<void> {
    const { sandboxes } = await this.of(teamId);
    if (sandboxes !== null && count >= sandboxes) {
      throw invalid(`Count must be lower than the maximum number of concurrent sandboxes (${sandboxes})`);
    }
  }

  /** The longest time that a sandbox of the team may run. */
  async maxRunMs(teamId: string): Promise<number> {
    const { timeoutHours } = await this.of(teamId);
    return timeoutHours === null ? Number.MAX_SAFE_INTEGER : timeoutHours * HOUR_MS;
  }

  /** How much of the network a sandbox of the team may use. Undefined where that is up to its node. */
  async networkOfSandbox(teamId: string): Promise<NetworkLimits> {
    const { sandboxBandwidthMbps: bandwidth, sandboxConnections: connections } = await this.of(teamId);
    return {
      bandwidthMbps: bandwidth ?? undefined,
      connections: connections === this.#deps.defaults.sandboxConnections ? undefined : (connections ?? LIMITS.sandboxConnections.max),
    };
  }

  /** Throws when a sandbox of the team may not use as much of the network. */
  async assertNetwork(teamId: string, chosen: NetworkLimits): Promise<void> {
    if (chosen.bandwidthMbps === undefined && chosen.connections === undefined) return;
    const limits = await this.of(teamId);
    assertBelow("network.limits.bandwidthMbps", chosen.bandwidthMbps, limits, "sandboxBandwidthMbps");
    assertBelow("network.limits.connections", chosen.connections, limits, "sandboxConnections");
  }

  /** The largest sandbox that the team may have. */
  async largestSandbox(teamId: string): Promise<SandboxSize> {
    return largestOf(await this.of(teamId));
  }

  /**
   * Runs a change that makes a new sandbox of the team run. `change` passes `limits` on to the store, which counts and changes in one
   * transaction. Throws an error that names the limit when there is no room for it, or when the sandbox is larger than any may be.
   */
  async admitNew<T>(teamId: string, size: SandboxSize, change: (limits: SandboxLimits) => Promise<T>): Promise<T> {
    const limits = await this.of(teamId);
    assertSize(size, largestOf(limits));
    return await naming(limits, () => change(limits));
  }

  /** Like `admitNew`, for a sandbox that the team has already. It may be larger than a new one may be. */
  async admit<T>(teamId: string, change: (limits: SandboxLimits) => Promise<T>): Promise<T> {
    const limits = await this.of(teamId);
    return await naming(limits, () => change(limits));
  }

  /** Runs a change that adds a snapshot of the team. `max` is undefined when there is no limit. */
  async admitSnapshot<T>(teamId: string, change: (max: number | undefined) => Promise<T>): Promise<T> {
    const limits = await this.of(teamId);
    return await naming(limits, () => change(limits.snapshots ?? undefined));
  }

  /** Runs a change that adds or starts a build of the team. `change` answers `limit` when as many as `max` are under way. */
  async admitBuild<T extends { readonly kind: string }>(teamId: string, change: (max: number) => Promise<T>): Promise<NotLimit<T>> {
    const limits = await this.of(teamId);
    return below("builds", limits, await change(limits.builds ?? Number.POSITIVE_INFINITY));
  }

  /**
   * Runs a change that adds a volume of the team. `change` locks the team, counts, and answers `limit` when there are as many as `max`, which
   * may be infinite. Throws an error that names the limit.
   */
  async admitVolume<T extends { readonly kind: string }>(
    teamId: string,
    change: (room: { readonly max: number; readonly maxMb: number | null }) => Promise<T>,
  ): Promise<NotLimit<T>> {
    const limits = await this.of(teamId);
    const room = { max: limits.volumes ?? Number.POSITIVE_INFINITY, maxMb: limits.volumeMb };
    return below("volumes", limits, await naming(limits, () => change(room)));
  }
}

function assertBelow(field: string, chosen: number | undefined, limits: Limits, name: LimitName): void {
  const most = limits[name];
  if (chosen === undefined || most === null || chosen <= most) return;
  throw invalid(`${field} cannot be greater than ${most}, which is your team's limit ${LIMITS[name].shown}`);
}

function below<T extends { readonly kind: string }>(name: "builds" | "volumes", limits: Limits, changed: T): NotLimit<T> {
  if (changed.kind === "limit") throw reached(name, limits[name]);
  return changed as NotLimit<T>;
}

type NotLimit<T> = Exclude<T, { readonly kind: "limit" }>;

async function naming<T>(limits: Limits, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== "limit_reached") throw error;
    const name = error.detailCode as LimitName;
    throw reached(name, limits[name], error);
  }
}

function reached(name: LimitName, max: number | null, cause?: unknown): PlatformError {
  const { shown, setting } = LIMITS[name];
  const advice = `If you need more, ask the operator of the platform to raise the team's limit ${shown} (SKERRY_${setting})`;
  return publicError("limit_reached", `${REACHED[name] ?? `you have reached the limit ${shown}`} (${max}). ${advice}.`, { cause });
}

function largestOf(limits: Limits): SandboxSize {
  return {
    cpuCount: Math.min(limits.sandboxCpu ?? Number.POSITIVE_INFINITY, LARGEST_SANDBOX.cpuCount),
    memoryMb: Math.min(limits.sandboxMemoryMb ?? Number.POSITIVE_INFINITY, LARGEST_SANDBOX.memoryMb),
    diskSizeMb: Math.min(limits.sandboxDiskMb ?? Number.POSITIVE_INFINITY, LARGEST_SANDBOX.diskSizeMb),
  };
}

function assertSize(size: SandboxSize, largest: SandboxSize): void {
  const exceeded = (what: string, has: number, name: LimitName, most: number) =>
    invalid(`The template's sandboxes have ${what} ${has}, and your team's may have at most ${most} (${LIMITS[name].shown})`);
  if (size.cpuCount > largest.cpuCount) throw exceeded("a CPU count of", size.cpuCount, "sandboxCpu", largest.cpuCount);
  if (size.memoryMb > largest.memoryMb) throw exceeded("a memory in MiB of", size.memoryMb, "sandboxMemoryMb", largest.memoryMb);
  if (size.diskSizeMb > largest.diskSizeMb) throw exceeded("a disk size in MiB of", size.diskSizeMb, "sandboxDiskMb", largest.diskSizeMb);
}
