import type { SandboxOrigin } from "./links/link-service.ts";

export interface ApiConfig {
  readonly host: string;
  /** 0 binds a free port, which `listen()` returns. */
  readonly port: number;
  /** Longest time that a sandbox may run, in hours. */
  readonly maxTimeoutHours: number;
  /** How many sandboxes a team may run at the same time. Paused sandboxes do not count. */
  readonly maxSandboxes: number;
  /** How many builds a team may have queued or running at the same time. */
  readonly maxBuilds: number;
  /** How many builds a node carries out at the same time. */
  readonly buildsAtOnce: number;
  /** How long uploaded files of builds are kept after their last use, in days. */
  readonly buildCacheDays: number;
  /** Largest upload for a build, in MiB. */
  readonly maxUploadMb: number;
  /** Where clients reach this API. Unset: the address that a request was sent to. */
  readonly publicUrl?: string;
  /** The name of this API process. It is the same after a restart, so that the process finds its unfinished work. */
  readonly ownerId: string;
  /** Shown as `envdVersion` for a sandbox whose node has not reported its own. */
  readonly agentVersion: string;
  /** Shown as `domain` in answers. Clients then use it instead of their own setting. */
  readonly advertiseDomain?: string;
  /** Where links to ports of sandboxes lead. Default: `http://…localhost:4681`. */
  readonly sandboxOrigin?: SandboxOrigin;
  readonly timing?: Partial<ApiTiming>;
}

/** Timeouts and intervals. Tests use shorter ones. */
export interface ApiTiming {
  readonly createTimeoutMs: number;
  readonly pauseTimeoutMs: number;
  readonly resumeTimeoutMs: number;
  readonly snapshotTimeoutMs: number;
  readonly killTimeoutMs: number;
  /** For the change of the options of a running sandbox. */
  readonly optionsTimeoutMs: number;
  readonly listTimeoutMs: number;
  /** Interval between two heartbeats of this process. */
  readonly beatMs: number;
  /** Time without a heartbeat after which the other processes take over the work of a process. */
  readonly deadAfterMs: number;
  /** How long a call waits for another operation on the same sandbox before it is refused. */
  readonly waitTimeoutMs: number;
  /** How long a shutdown waits for requests under way. Shorter than the 30 s after which `./skerry down` kills the process. */
  readonly drainMs: number;
  readonly expiryScanMs: number;
  /**
   * How long the guest may keep its sandbox from being paused after the timeout. Then the sandbox is paused without its memory, or killed.
   */
  readonly autoPauseGraceMs: number;
  readonly reconcileMs: number;
  /** Time after which an image that no entry refers to is deleted from its node. */
  readonly strayImageMs: number;
  /** Interval between two requests to a node for its unused layers. */
  readonly layerLookMs: number;
  /**
   * A layer that neither a build nor its node needs for this long is removed. Longer than an operation may take from reading a build
   * to the answer of the node.
   */
  readonly unusedLayerMs: number;
  /** How long a sandbox that ended by itself stays paused, if its owner had not asked for a pause at the timeout. */
  readonly keepUnaskedMs: number;
  /** Age after which the entry and the journal of an ended sandbox are deleted. */
  readonly keepEndedMs: number;
  /** How long an `Idempotency-Key` is remembered. */
  readonly keepKeysMs: number;
  /** Interval between two rounds of the build scheduler. */
  readonly buildRoundMs: number;
  /** Pause before a node that did not answer about a build is asked again. */
  readonly buildRetryMs: number;
  /** How long a build may wait to be started by its client. */
  readonly buildWaitingMs: number;
  /** How long a started build may wait for a node. */
  readonly buildQueueMs: number;
  /** How long a build may take from its beginning on a node. */
  readonly buildMs: number;
  /** Lifetime of an upload link. */
  readonly uploadLinkMs: number;
  /** Longest pause between two pieces of an upload. */
  readonly uploadIdleMs: number;
  /** How long the log of a build is kept after its end. */
  readonly keepBuildLogsMs: number;
  /** Interval between two searches for uploads and logs that nothing needs. */
  readonly uploadLookMs: number;
}

const DAY_MS = 24 * 3_600_000;

export const DEFAULT_TIMING: ApiTiming = {
  createTimeoutMs: 60_000,
  pauseTimeoutMs: 120_000,
  resumeTimeoutMs: 60_000,
  snapshotTimeoutMs: 120_000,
  killTimeoutMs: 30_000,
  optionsTimeoutMs: 30_000,
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
  buildRoundMs: 1_000,
  buildRetryMs: 1_000,
  buildWaitingMs: 40 * 60_000,
  buildQueueMs: 6 * 3_600_000,
  buildMs: 3_600_000,
  uploadLinkMs: 30 * 60_000,
  uploadIdleMs: 60_000,
  keepBuildLogsMs: 90 * DAY_MS,
  uploadLookMs: 600_000,
};
