// What a team may do. The rest of the API asks this module, and does not know where a limit comes from: today every team has the limits of the
// platform's configuration.

import { PlatformError } from "@skerry/base";
import { invalid, publicError } from "../errors.ts";

const HOUR_MS = 3_600_000;

export interface Limits {
  /** Sandboxes that the team may run at the same time. Paused sandboxes do not count. */
  readonly maxSandboxes: number;
  /** How long a sandbox may run from its start or its last resume. */
  readonly maxTimeoutHours: number;
  /** Builds of the team that may be queued or run at the same time. */
  readonly maxBuilds: number;
}

export class TeamLimits {
  readonly #ofEveryTeam: Limits;

  constructor(ofEveryTeam: Limits) {
    this.#ofEveryTeam = ofEveryTeam;
  }

  /** Throws when no sandbox of the team may run for so long. */
  assertTimeout(teamId: string, seconds: number): void {
    const { maxTimeoutHours } = this.#of(teamId);
    if (seconds * 1000 > maxTimeoutHours * HOUR_MS) throw invalid(`Timeout cannot be greater than ${maxTimeoutHours} hours`);
  }

  /** Throws when the forks and their sandbox would be more than the team may run. */
  assertForks(teamId: string, count: number): void {
    const { maxSandboxes } = this.#of(teamId);
    if (count >= maxSandboxes) throw invalid(`Count must be lower than the maximum number of concurrent sandboxes (${maxSandboxes})`);
  }

  /** The longest time that a sandbox of the team may run. */
  maxRunMs(teamId: string): number {
    return this.#of(teamId).maxTimeoutHours * HOUR_MS;
  }

  /**
   * Runs a change that makes one more sandbox of the team run. `change` passes `maxOfTeam` on to the store, which counts and changes in one
   * transaction. Throws an error that names the limit when the team runs as many as it may.
   */
  async admit<T>(teamId: string, change: (maxOfTeam: number) => Promise<T>): Promise<T> {
    const { maxSandboxes } = this.#of(teamId);
    try {
      return await change(maxSandboxes);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== "limit_reached") throw error;
      const message = `you have reached the maximum number of concurrent E2B sandboxes (${maxSandboxes}). If you need more, raise SKERRY_MAX_SANDBOXES of the platform.`;
      throw publicError("limit_reached", message, { cause: error });
    }
  }

  /** Runs a change that adds or starts a build of the team. Throws an error that names the limit when as many as allowed are under way. */
  async admitBuild<T extends { readonly kind: string }>(
    teamId: string,
    change: (maxBuilds: number) => Promise<T>,
  ): Promise<Exclude<T, { readonly kind: "limit" }>> {
    const { maxBuilds } = this.#of(teamId);
    const changed = await change(maxBuilds);
    if (changed.kind !== "limit") return changed as Exclude<T, { readonly kind: "limit" }>;
    const message = `you have reached the maximum number of concurrent template builds (${maxBuilds}). Wait for one to end, or raise SKERRY_MAX_BUILDS of the platform.`;
    throw publicError("limit_reached", message);
  }

  #of(_teamId: string): Limits {
    return this.#ofEveryTeam;
  }
}
