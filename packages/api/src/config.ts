export interface ApiConfig {
  readonly host: string;
  /** 0 picks a free one; `listen()` answers which. */
  readonly port: number;
  /** The longest that a sandbox may run, in hours. */
  readonly maxTimeoutHours: number;
  /** This control process. Stable over restarts: it is how unfinished work is found again. */
  readonly ownerId: string;
  /** Shown as `envdVersion` for a sandbox whose node has not said its own. */
  readonly agentVersion: string;
  /** Put into answers as `domain`, which makes clients use it instead of their own setting. */
  readonly advertiseDomain?: string;
  readonly timing?: Partial<ApiTiming>;
}

/** How long things may take and how often they are looked at; tests use shorter ones. */
export interface ApiTiming {
  readonly createTimeoutMs: number;
  readonly killTimeoutMs: number;
  readonly listTimeoutMs: number;
  readonly expiryScanMs: number;
  readonly reconcileMs: number;
  /** Entries of ended sandboxes are forgotten after this. */
  readonly keepEndedMs: number;
}

export const DEFAULT_TIMING: ApiTiming = {
  createTimeoutMs: 60_000,
  killTimeoutMs: 30_000,
  listTimeoutMs: 10_000,
  expiryScanMs: 200,
  reconcileMs: 2_000,
  keepEndedMs: 7 * 24 * 3_600_000,
};
