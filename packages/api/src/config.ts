export interface ApiConfig {
  readonly host: string;
  /** 0 picks a free one; `listen()` answers which. */
  readonly port: number;
  /** The longest that a sandbox may run, in hours. */
  readonly maxTimeoutHours: number;
  /** How many sandboxes a team may run at a time; paused ones do not count. */
  readonly maxSandboxes: number;
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
  readonly pauseTimeoutMs: number;
  readonly resumeTimeoutMs: number;
  readonly snapshotTimeoutMs: number;
  readonly killTimeoutMs: number;
  readonly listTimeoutMs: number;
  /** How often this process says that it lives, and how long after the last time it is dead for the others. */
  readonly beatMs: number;
  readonly deadAfterMs: number;
  /** How long a call waits for what is under way with a sandbox before it is refused. */
  readonly waitTimeoutMs: number;
  /** How long a stop waits for what is under way; less than those who stop us wait before they kill. */
  readonly drainMs: number;
  readonly expiryScanMs: number;
  /** How long a sandbox whose time is over may fail to be paused by its own doing, before it loses its memory or its life. */
  readonly autoPauseGraceMs: number;
  readonly reconcileMs: number;
  /** An image on a node that no entry knows is deleted after this. */
  readonly strayImageMs: number;
  /** How often a node is asked which of its layers nothing uses. */
  readonly layerLookMs: number;
  /**
   * A layer that neither a build nor its node needs for this long is removed. Longer than an operation may take from reading a build
   * to the answer of the node.
   */
  readonly unusedLayerMs: number;
  /** A sandbox that ended by itself, and was not to be paused when its time is over, is kept for as long. */
  readonly keepUnaskedMs: number;
  /** Entries of ended sandboxes are forgotten after this, and what they went through. */
  readonly keepEndedMs: number;
  /** For how long a request is answered as before when it is repeated with its key. */
  readonly keepKeysMs: number;
}

const DAY_MS = 24 * 3_600_000;

export const DEFAULT_TIMING: ApiTiming = {
  createTimeoutMs: 60_000,
  pauseTimeoutMs: 120_000,
  resumeTimeoutMs: 60_000,
  snapshotTimeoutMs: 120_000,
  killTimeoutMs: 30_000,
  listTimeoutMs: 10_000,
  beatMs: 2_000,
  deadAfterMs: 15_000,
  waitTimeoutMs: 60_000,
  drainMs: 15_000,
  expiryScanMs: 200,
  autoPauseGraceMs: 60_000,
  reconcileMs: 2_000,
  strayImageMs: 60_000,
  layerLookMs: 60_000,
  unusedLayerMs: 600_000,
  keepUnaskedMs: 7 * DAY_MS,
  keepEndedMs: DAY_MS,
  keepKeysMs: DAY_MS,
};
