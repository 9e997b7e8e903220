import type { SandboxOrigin } from "./links/link-service.ts";
import type { OidcConfig } from "./sign-in/oidc-config.ts";
import type { Limits } from "./teams/limits.ts";

export interface ApiConfig {
  readonly host: string;
  /** 0 binds a free port, which `listen()` returns. */
  readonly port: number;
  /** The limits of teams without a tier. */
  readonly limits: Limits;
  /** How many builds a node carries out at the same time. */
  readonly buildsAtOnce: number;
  /** How long uploaded files of builds are kept after their last use, in days. */
  readonly buildCacheDays: number;
  /** Largest upload for a build, in MiB. */
  readonly maxUploadMb: number;
  /** Where clients reach this API. Unset: the address that a request was sent to. */
  readonly publicUrl?: string;
  /** How long events are kept, in days. */
  readonly eventDays: number;
  /** Addresses and networks that webhooks may lead to although they are not public. */
  readonly webhookNetworks?: readonly string[];
  /** Of the operator: the proxies of sandboxes may be there. */
  readonly privateNetworks?: readonly string[];
  /** How many events of a team are kept. */
  readonly maxEvents: number;
  /** The name of this API process. It is the same after a restart, so that the process finds its unfinished work. */
  readonly ownerId: string;
  /** Shown as `envdVersion` for a sandbox whose node has not reported its own. */
  readonly agentVersion: string;
  /** Shown as `domain` in answers. Clients then use it instead of their own setting. */
  readonly advertiseDomain?: string;
  /** Where links to ports of sandboxes lead. Default: `http://…localhost:4681`. */
  readonly sandboxOrigin?: SandboxOrigin;
  /** How long metrics are kept, in days. Default: 30. */
  readonly metricsDays?: number;
  /** How long logs of sandboxes are kept, in days. Default: 7. */
  readonly logDays?: number;
  /** Size of all logs of a team's sandboxes, in MiB. Default: 256. */
  readonly logTeamMb?: number;
  /** How long the audit log is kept, in days. Default: 365. */
  readonly auditDays?: number;
  /** How many lines of the audit log are kept. Default: 10,000,000. */
  readonly maxAuditLines?: number;
  /** Addresses and networks of proxies whose `X-Forwarded-For` names the client. */
  readonly trustedProxies?: readonly string[];
  /** Absent: users have access tokens of the platform only. */
  readonly oidc?: OidcConfig;
  /** The size of a volume for which none is given, in MiB. Default: 10,240. */
  readonly volumeSizeMb?: number;
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
  /** Shortest time between two attempts to read the keys of the identity provider. */
  readonly providerRetryMs: number;
  readonly expiryScanMs: number;
  /**
   * How long the guest may keep its sandbox from being paused after the timeout. Then the sandbox is paused without its memory, or killed.
   */
  readonly autoPauseGraceMs: number;
  readonly reconcileMs: number;
  /** Interval between two collections of metrics. */
  readonly metricsMs: number;
  /** Interval between two searches for logs that are too old or too many. */
  readonly logLookMs: number;
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
  /** Interval between two looks for new events. */
  readonly eventLookMs: number;
  /** Longest silence of an event stream, after which its credentials are checked again. */
  readonly eventHeartbeatMs: number;
  /** Interval between two looks for webhooks that nobody delivers. */
  readonly webhookLookMs: number;
  /** How long an endpoint may take for one delivery. */
  readonly webhookTimeoutMs: number;
  /** The wait after the first failure of a delivery, and the longest one. */
  readonly webhookRetryMs: number;
  readonly webhookLongestRetryMs: number;
  /** How long a delivery is tried again. */
  readonly webhookGiveUpMs: number;
  /** Interval between two deletions of old events. */
  readonly eventCleanMs: number;
  /** Interval between two looks after the audit log. */
  readonly auditLookMs: number;
  /** Lifetime of the token of a volume. */
  readonly volumeTokenMs: number;
  /** Interval between two searches for uploads and logs that nothing needs. */
  readonly uploadLookMs: number;
}

const DAY_MS = 24 * 3_600_000;

export const DEFAULT_TIMING: ApiTiming = {
  providerRetryMs: 10_000,
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
  metricsMs: 5_000,
  logLookMs: 600_000,
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
  eventLookMs: 100,
  eventHeartbeatMs: 15_000,
  webhookLookMs: 1_000,
  webhookTimeoutMs: 15_000,
  webhookRetryMs: 5_000,
  webhookLongestRetryMs: 3_600_000,
  webhookGiveUpMs: 3 * DAY_MS,
  eventCleanMs: 60_000,
  auditLookMs: 10_000,
  volumeTokenMs: DAY_MS,
  uploadLookMs: 600_000,
};
