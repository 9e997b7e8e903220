import { PlatformError } from "@skerry/base";
import { parseOptions, type SandboxOptions } from "@skerry/wire/node";
import type { Selectable, Updateable } from "kysely";
import type { SandboxTable } from "./tables.ts";
import { mountsFrom, mountsText, type VolumeMount } from "./volume.ts";

export type SandboxState =
  | "starting"
  | "running"
  /** An image of the running sandbox is being taken. */
  | "snapshotting"
  | "pausing"
  | "paused"
  /** The sandbox is paused, and another image is being made from its image. */
  | "copying"
  | "resuming"
  | "killing"
  | "ended";

/**
 * Why a sandbox ended. `abandoned`: the process that created it died. `exited`: the sandbox ended by itself. `memory`: it exceeded its memory
 * limit.
 */
export type EndReason = "request" | "timeout" | "memory" | "exited" | "node_lost" | "create_failed" | "caller_gone" | "abandoned";

/** The reasons of ends that nobody requested. */
export type UnaskedEnd = Extract<EndReason, "exited" | "memory">;

/** Why a sandbox is paused that nobody paused. `disk`: it was filling the data disk of its host. */
export type PauseReason = UnaskedEnd | "disk";

/** The state that callers see; null: the sandbox is not listed. */
export const LISTED_AS: Readonly<Record<SandboxState, "running" | "paused" | null>> = {
  starting: null,
  running: "running",
  snapshotting: "running",
  pausing: "paused",
  paused: "paused",
  copying: "paused",
  resuming: "paused",
  killing: null,
  ended: null,
};

/** States in which a sandbox counts towards its team's limit of concurrent sandboxes. */
export const OCCUPYING_STATES: readonly SandboxState[] = ["starting", "running", "snapshotting", "pausing", "resuming"];

export interface NewSandbox {
  readonly id: string;
  readonly teamId: string;
  readonly templateId: string;
  readonly buildId: string;
  readonly alias: string | null;
  readonly nodeId: string;
  readonly nodeUrl: string;
  /** The API process that works on the sandbox, or did last. */
  readonly owner: string;
  readonly createdAt: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  /** What the caller chose. This package never reads the single options: settings that statements need are fields of their own. */
  readonly options: SandboxOptions;
  readonly autoPause: boolean;
  readonly autoPauseMemory: boolean;
  readonly autoResume: boolean;
  /** The timeout of the create. */
  readonly timeoutMs: number;
  readonly volumeMounts: readonly VolumeMount[];
}

export interface Sandbox extends NewSandbox {
  readonly state: SandboxState;
  readonly stateChangedAt: number;
  /** Incremented by every change of state. */
  readonly version: number;
  readonly runtime: string | null;
  readonly agentVersion: string | null;
  readonly startedAt: number | null;
  readonly endAt: number | null;
  /** The image of a paused sandbox, or the image that a pause is writing or a resume is using. */
  readonly imageId: string | null;
  readonly imageHasMemory: boolean | null;
  /** The agent did not answer when the image was taken. */
  readonly agentUnresponsive: boolean | null;
  readonly pausedAt: number | null;
  /** Why the sandbox is paused, when the pause was neither requested nor due. */
  readonly pauseReason: PauseReason | null;
  /** When a paused sandbox ends; null: never. */
  readonly keepUntil: number | null;
  /** What was left of the timeout of a sandbox that a shutdown suspended: the next start resumes it. Null for all others. */
  readonly resumeMs: number | null;
  /** The run of the API process that suspended it. */
  readonly suspendedBy: string | null;
  /** When the next attempt to pause an expired sandbox may begin. */
  readonly expireNotBefore: number | null;
  readonly endedAt: number | null;
  readonly endReason: EndReason | null;
  readonly endActor: string | null;
}

/** Fields that a change of state may set. */
export type SandboxChanges = Partial<
  Pick<
    Sandbox,
    | "owner"
    | "startedAt"
    | "endAt"
    | "runtime"
    | "agentVersion"
    | "imageId"
    | "imageHasMemory"
    | "agentUnresponsive"
    | "pausedAt"
    | "pauseReason"
    | "keepUntil"
    | "resumeMs"
    | "suspendedBy"
    | "autoPause"
    | "expireNotBefore"
  >
>;

/** The fields that are needed to settle a sandbox. Excludes what callers may fill without need, such as metadata. */
export type SandboxEntry = Pick<
  Sandbox,
  | "id"
  | "teamId"
  | "state"
  | "stateChangedAt"
  | "version"
  | "nodeId"
  | "owner"
  | "createdAt"
  | "imageId"
  | "autoPause"
  | "autoPauseMemory"
  | "endAt"
>;

export const ENTRY_COLUMNS = [
  "id",
  "team_id",
  "state",
  "state_changed_at",
  "version",
  "node_id",
  "owner",
  "created_at",
  "image_id",
  "auto_pause",
  "auto_pause_memory",
  "end_at",
] as const;

export function entryFrom(row: Pick<Selectable<SandboxTable>, (typeof ENTRY_COLUMNS)[number]>): SandboxEntry {
  return {
    id: row.id,
    teamId: row.team_id,
    state: row.state as SandboxState,
    stateChangedAt: row.state_changed_at,
    version: row.version,
    nodeId: row.node_id,
    owner: row.owner,
    createdAt: row.created_at,
    imageId: row.image_id,
    autoPause: row.auto_pause === 1,
    autoPauseMemory: row.auto_pause_memory === 1,
    endAt: row.end_at,
  };
}

export function sandboxRow(sandbox: NewSandbox): Selectable<SandboxTable> {
  return {
    id: sandbox.id,
    team_id: sandbox.teamId,
    template_id: sandbox.templateId,
    build_id: sandbox.buildId,
    alias: sandbox.alias,
    state: "starting",
    state_changed_at: sandbox.createdAt,
    node_id: sandbox.nodeId,
    node_url: sandbox.nodeUrl,
    owner: sandbox.owner,
    runtime: null,
    agent_version: null,
    created_at: sandbox.createdAt,
    started_at: null,
    end_at: null,
    metadata: sandbox.metadata === null ? null : JSON.stringify(sandbox.metadata),
    cpu_count: sandbox.cpuCount,
    memory_mb: sandbox.memoryMb,
    disk_size_mb: sandbox.diskSizeMb,
    options: JSON.stringify(sandbox.options),
    auto_pause: Number(sandbox.autoPause),
    auto_resume: Number(sandbox.autoResume),
    ended_at: null,
    end_reason: null,
    end_actor: null,
    version: 1,
    listed: null,
    image_id: null,
    image_has_memory: null,
    agent_unresponsive: null,
    paused_at: null,
    auto_pause_memory: Number(sandbox.autoPauseMemory),
    timeout_ms: sandbox.timeoutMs,
    expire_not_before: null,
    pause_reason: null,
    keep_until: null,
    resume_ms: null,
    suspended_by: null,
    options_change: null,
    volume_mounts: mountsText(sandbox.volumeMounts),
  };
}

export function changedColumns(changes: SandboxChanges): Updateable<SandboxTable> {
  const columns: Updateable<SandboxTable> = {};
  if (changes.owner !== undefined) columns.owner = changes.owner;
  if (changes.startedAt !== undefined) columns.started_at = changes.startedAt;
  if (changes.endAt !== undefined) columns.end_at = changes.endAt;
  if (changes.runtime !== undefined) columns.runtime = changes.runtime;
  if (changes.agentVersion !== undefined) columns.agent_version = changes.agentVersion;
  if (changes.imageId !== undefined) columns.image_id = changes.imageId;
  if (changes.imageHasMemory !== undefined) columns.image_has_memory = numberOf(changes.imageHasMemory);
  if (changes.agentUnresponsive !== undefined) columns.agent_unresponsive = numberOf(changes.agentUnresponsive);
  if (changes.pausedAt !== undefined) columns.paused_at = changes.pausedAt;
  if (changes.pauseReason !== undefined) columns.pause_reason = changes.pauseReason;
  if (changes.keepUntil !== undefined) columns.keep_until = changes.keepUntil;
  if (changes.resumeMs !== undefined) columns.resume_ms = changes.resumeMs;
  if (changes.suspendedBy !== undefined) columns.suspended_by = changes.suspendedBy;
  if (changes.autoPause !== undefined) columns.auto_pause = Number(changes.autoPause);
  if (changes.expireNotBefore !== undefined) columns.expire_not_before = changes.expireNotBefore;
  return columns;
}

export function sandboxFrom(row: Selectable<SandboxTable>): Sandbox {
  return {
    id: row.id,
    teamId: row.team_id,
    templateId: row.template_id,
    buildId: row.build_id,
    alias: row.alias,
    state: row.state as SandboxState,
    stateChangedAt: row.state_changed_at,
    version: row.version,
    nodeId: row.node_id,
    nodeUrl: row.node_url,
    owner: row.owner,
    runtime: row.runtime,
    agentVersion: row.agent_version,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endAt: row.end_at,
    metadata: row.metadata === null ? null : (JSON.parse(row.metadata) as Record<string, string>),
    cpuCount: row.cpu_count,
    memoryMb: row.memory_mb,
    diskSizeMb: row.disk_size_mb,
    options: optionsFrom(row),
    autoPause: row.auto_pause === 1,
    autoPauseMemory: row.auto_pause_memory === 1,
    autoResume: row.auto_resume === 1,
    timeoutMs: row.timeout_ms,
    volumeMounts: mountsFrom(row.volume_mounts),
    imageId: row.image_id,
    imageHasMemory: truthOf(row.image_has_memory),
    agentUnresponsive: truthOf(row.agent_unresponsive),
    pausedAt: row.paused_at,
    pauseReason: row.pause_reason as PauseReason | null,
    keepUntil: row.keep_until,
    resumeMs: row.resume_ms,
    suspendedBy: row.suspended_by,
    expireNotBefore: row.expire_not_before,
    endedAt: row.ended_at,
    endReason: row.end_reason as EndReason | null,
    endActor: row.end_actor,
  };
}

export function optionsFrom(row: Pick<Selectable<SandboxTable>, "id" | "options">): SandboxOptions {
  try {
    return parseOptions(JSON.parse(row.options));
  } catch (error) {
    throw new PlatformError("store_damaged", `the options of sandbox ${row.id} in the database are not valid`, { cause: error });
  }
}

function numberOf(truth: boolean | null): number | null {
  return truth === null ? null : Number(truth);
}

function truthOf(number: number | null): boolean | null {
  return number === null ? null : number === 1;
}
