import type { Selectable } from "kysely";
import type { SandboxTable } from "./tables.ts";

export type SandboxState = "starting" | "running" | "killing" | "ended";

/** Why a sandbox is no more. `abandoned`: its create did not come to its end. `exited`: it ended by itself. */
export type EndReason = "request" | "timeout" | "create_failed" | "caller_gone" | "abandoned" | "exited" | "node_lost";

export interface NewSandbox {
  readonly id: string;
  readonly teamId: string;
  readonly templateId: string;
  readonly buildId: string;
  readonly alias: string | null;
  readonly nodeId: string;
  readonly nodeUrl: string;
  /** The control process that creates it. */
  readonly owner: string;
  readonly createdAt: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  /** As the caller gave it; null when not given. */
  readonly allowInternetAccess: boolean | null;
  readonly autoPause: boolean;
  readonly autoResume: boolean;
}

export interface Sandbox extends NewSandbox {
  readonly state: SandboxState;
  readonly stateChangedAt: number;
  readonly runtime: string | null;
  readonly agentVersion: string | null;
  readonly startedAt: number | null;
  readonly endAt: number | null;
  readonly endedAt: number | null;
  readonly endReason: EndReason | null;
}

/** What it takes to settle a sandbox: not its metadata, which callers may fill and which is read in vain then. */
export type SandboxEntry = Pick<Sandbox, "id" | "state" | "nodeId" | "owner" | "createdAt">;

export const ENTRY_COLUMNS = ["id", "state", "node_id", "owner", "created_at"] as const;

export function entryFrom(row: Pick<Selectable<SandboxTable>, (typeof ENTRY_COLUMNS)[number]>): SandboxEntry {
  return { id: row.id, state: row.state as SandboxState, nodeId: row.node_id, owner: row.owner, createdAt: row.created_at };
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
    allow_internet_access: sandbox.allowInternetAccess === null ? null : Number(sandbox.allowInternetAccess),
    auto_pause: Number(sandbox.autoPause),
    auto_resume: Number(sandbox.autoResume),
    ended_at: null,
    end_reason: null,
  };
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
    allowInternetAccess: row.allow_internet_access === null ? null : row.allow_internet_access === 1,
    autoPause: row.auto_pause === 1,
    autoResume: row.auto_resume === 1,
    endedAt: row.ended_at,
    endReason: row.end_reason as EndReason | null,
  };
}
