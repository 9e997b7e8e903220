// An event as E2B's clients know it (version v2), with what a reader of any kind of event needs beside it.

import { createHash } from "node:crypto";
import type { SandboxFacts, StoredEvent } from "@skerry/store";
import { Type } from "typebox";
import { egressOf } from "../sandbox-options.ts";

/** The former name of each kind of change. */
const LABELS: Readonly<Record<string, string>> = {
  created: "create",
  paused: "pause",
  resumed: "resume",
  updated: "update",
  checkpointed: "checkpoint",
  killed: "kill",
  deleted: "delete",
  started: "start",
  failed: "fail",
};

/** What receivers know of the reasons of an end. All others are `unknown` to them; `reason` has them. */
const KILL_REASONS: Readonly<Record<string, string>> = {
  request: "request",
  timeout: "timeout",
  node_lost: "orphaned",
  abandoned: "orphaned",
};

const Time = (description: string) => Type.String({ format: "date-time", description });

export const EventSchema = Type.Object(
  {
    id: Type.String({ description: "Stays the same in every delivery." }),
    version: Type.Literal("v2"),
    type: Type.String({ description: "What changed, such as `sandbox.lifecycle.created`." }),
    timestamp: Time("When it changed."),
    sequence: Type.Integer({ description: "Counts the team's events, without a gap." }),
    event_category: Type.String(),
    event_label: Type.String(),
    event_data: Type.Record(Type.String(), Type.Unknown(), { description: "What belongs to this type of event." }),
    team_id: Type.String(),
    subject_id: Type.String({ description: "The id of what changed." }),
    actor: Type.Object({
      type: Type.String({ description: "`key`, `user`, `operator`, `traffic` or `platform`." }),
      id: Type.Optional(Type.String()),
    }),
    reason: Type.Optional(Type.String()),
    request_id: Type.Optional(Type.String({ description: "The request that caused it." })),
    sandbox_id: Type.Optional(Type.String()),
    sandbox_execution_id: Type.Optional(Type.String({ description: "Differs for each start of the sandbox." })),
    sandbox_template_id: Type.Optional(Type.String()),
    sandbox_build_id: Type.Optional(Type.String()),
    sandbox_team_id: Type.Optional(Type.String()),
    events_ttl_days: Type.Integer({ description: "How long events are kept." }),
  },
  { title: "Event" },
);

export function encodeEvent(event: StoredEvent, about: { readonly keepDays: number }): Record<string, unknown> {
  const [category = "", , change = ""] = event.type.split(".");
  const { sandbox } = event.facts;
  return {
    id: event.id,
    version: "v2",
    type: event.type,
    timestamp: new Date(event.at).toISOString(),
    sequence: event.sequence,
    event_category: category === "sandbox" ? "lifecycle" : category,
    event_label: LABELS[change] ?? change,
    event_data: sandbox ? sandboxData(event, sandbox) : otherData(event),
    team_id: event.teamId,
    subject_id: event.subjectId,
    actor: encodeActor(event.actor),
    ...(event.reason === undefined ? {} : { reason: event.reason }),
    ...(event.requestId === undefined ? {} : { request_id: event.requestId }),
    ...(sandbox
      ? {
          sandbox_id: event.subjectId,
          sandbox_execution_id: executionIdOf(event.subjectId, sandbox.startedAt ?? 0),
          sandbox_template_id: event.facts.templateId,
          sandbox_build_id: event.facts.buildId,
          sandbox_team_id: event.teamId,
        }
      : {}),
    events_ttl_days: about.keepDays,
  };
}

function sandboxData({ facts, actor }: StoredEvent, sandbox: SandboxFacts): Record<string, unknown> {
  const { startedAt, ranMs, endAt, killReason } = sandbox;
  return {
    sandbox_metadata: sandbox.metadata ?? {},
    ...(endAt === undefined || endAt === null ? {} : { set_timeout: new Date(endAt).toISOString() }),
    network_egress: egressOf(sandbox.options),
    execution: {
      ...(startedAt === null ? {} : { started_at: new Date(startedAt).toISOString() }),
      vcpu_count: sandbox.cpuCount,
      memory_mb: sandbox.memoryMb,
      ...(ranMs === undefined ? {} : { execution_time: ranMs }),
    },
    ...(killReason === undefined ? {} : { kill_reason: killReasonOf(killReason, actor) }),
    ...(facts.snapshot ? { snapshot: { template_id: facts.snapshot.templateId, build_id: facts.snapshot.buildId } } : {}),
  };
}

function killReasonOf(reason: string, actor: string): string {
  if (reason === "request" && actor === "admin") return "admin";
  return KILL_REASONS[reason] ?? "unknown";
}

function otherData({ facts }: StoredEvent): Record<string, unknown> {
  const { name, templateId, buildId, tags, isPublic, version, sizeMb, role } = facts;
  // JSON leaves out what is undefined.
  return { name, template_id: templateId, build_id: buildId, tags, is_public: isPublic, version, size_mb: sizeMb, role };
}

export function encodeActor(actor: string): { type: string; id?: string } {
  const [type = "", id] = actor.split(":");
  if (type === "admin") return { type: "operator" };
  return id === undefined ? { type } : { type, id };
}

/** The same for all events between two starts of a sandbox, and a UUID because receivers take it for one. */
function executionIdOf(sandboxId: string, startedAt: number): string {
  const hex = createHash("sha256").update(`${sandboxId}/${startedAt}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
