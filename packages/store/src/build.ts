// Builds as the platform carries them out. `Build` in templates.ts is what sandboxes are started from.

import type { Selectable } from "kysely";
import type { BuildTable } from "./tables.ts";
import type { Build, BuildContext, BuildStart, BuildStatus } from "./templates.ts";

/** What a client asked for when it started a build. Credentials are never stored. */
export interface BuildRequest {
  readonly source: {
    readonly kind: "image" | "template";
    /** As the client wrote it. */
    readonly reference: string;
    /** Where the process that was asked keeps the credentials of the registry, in memory. */
    readonly credentialsId?: string;
  };
  readonly steps: readonly BuildRequestStep[];
  readonly force: boolean;
  readonly startCommand?: string;
  readonly readyCommand?: string;
  /** The client is older than 2.3.0. */
  readonly withoutDefaultUser: boolean;
}

export interface BuildRequestStep {
  /** Upper case. */
  readonly type: string;
  readonly args: readonly string[];
  /** The blob of the files that the client uploaded; "" when it uploaded none. */
  readonly archive: string;
  /** The hash that the client gave these files; "" when it gave none. */
  readonly filesHash: string;
  readonly force: boolean;
}

/** Why a build failed, in words for its team. */
export interface BuildReason {
  readonly message: string;
  readonly step?: string;
}

/** A build with its request. */
export interface BuildJob extends BuildEntry {
  /** Undefined until the client starts the build, and when it has ended. */
  readonly request: BuildRequest | undefined;
}

/** A build as lists have it: everything that its progress depends on, but not the request, which may be large. */
export interface BuildEntry {
  readonly id: string;
  readonly templateId: string;
  readonly teamId: string;
  readonly templateIsDeleted: boolean;
  readonly status: BuildStatus;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly createdAt: number;
  readonly reason: BuildReason | undefined;
  /** The run of the API process that follows the build; "" before a process does. */
  readonly owner: string;
  /** The node that carries the build out, or still has something of it. */
  readonly nodeId: string | undefined;
  readonly startedAt: number | undefined;
  /** When a node first began it. */
  readonly beganAt: number | undefined;
  readonly attempts: number;
  /** How many events of the node have been stored. */
  readonly eventsRead: number;
  /** The client reads the log as strings. */
  readonly isLegacy: boolean;
}

/** What a build left. */
export interface BuildOutcome {
  readonly layers: readonly string[];
  readonly layersNodeId: string;
  readonly context: BuildContext;
  readonly start: BuildStart | undefined;
  readonly defaultUser: string;
  readonly defaultWorkdir: string;
  readonly agentVersion: string;
}

export type NewBuild = Pick<Build, "id" | "cpuCount" | "memoryMb" | "diskSizeMb">;

type EntryColumn =
  | "id"
  | "template_id"
  | "status"
  | "cpu_count"
  | "memory_mb"
  | "disk_size_mb"
  | "created_at"
  | "reason"
  | "owner"
  | "builder_node_id"
  | "started_at"
  | "began_at"
  | "attempts"
  | "events_read"
  | "is_legacy";

export type EntryRow = Pick<Selectable<BuildTable>, EntryColumn> & { readonly team_id: string; readonly deleted_at: number | null };

export function jobFrom(row: EntryRow & Pick<Selectable<BuildTable>, "request">): BuildJob {
  return { ...entryFrom(row), request: row.request === null ? undefined : (JSON.parse(row.request) as BuildRequest) };
}

export function entryFrom(row: EntryRow): BuildEntry {
  return {
    id: row.id,
    templateId: row.template_id,
    teamId: row.team_id,
    templateIsDeleted: row.deleted_at !== null,
    status: row.status as BuildStatus,
    cpuCount: row.cpu_count,
    memoryMb: row.memory_mb,
    diskSizeMb: row.disk_size_mb,
    createdAt: row.created_at,
    reason: row.reason === null ? undefined : (JSON.parse(row.reason) as BuildReason),
    owner: row.owner ?? "",
    nodeId: row.builder_node_id ?? undefined,
    startedAt: row.started_at ?? undefined,
    beganAt: row.began_at ?? undefined,
    attempts: row.attempts,
    eventsRead: row.events_read,
    isLegacy: row.is_legacy === 1,
  };
}
