import type { Selectable } from "kysely";
import type { AuditTable } from "../tables.ts";

/** `done`; `refused` for want of a right or because there were too many; `failed` for any other reason; `unknown`: its process ended before the answer. */
export type AuditOutcome = "done" | "refused" | "failed" | "unknown";

/** What is known of a request before its answer. It contains no secret. */
export interface AuditFacts {
  readonly requestId: string | null;
  /** The operation's id; null in a line that counts refusals of several operations. */
  readonly operation: string | null;
  readonly teamId: string | null;
  /** `key:<id>`, `user:<id>`, `admin` or `anyone`. */
  readonly actor: string;
  /** The member who signs in with the key. */
  readonly userId: string | null;
  readonly credentialId: string | null;
  /** The parts of the key or token that may be shown. */
  readonly credentialMask: string | null;
  /** Null when no single client sent it. */
  readonly address: string | null;
  /** The id in the path. */
  readonly subjectId: string | null;
}

export interface NewAuditLine extends AuditFacts {
  readonly outcome: AuditOutcome;
  /** HTTP status; null when there was no answer. */
  readonly status: number | null;
  /** The code of the error. */
  readonly reason: string | null;
  readonly durationMs: number | null;
  /** Ids of what was made, separated by commas. */
  readonly madeIds: string | null;
  /** How many requests the line stands for. */
  readonly count: number;
}

export interface AuditLine extends NewAuditLine {
  /** Counts the lines, without a gap. */
  readonly number: number;
  /** When the line was written, at most a second after the answer. It never falls. */
  readonly at: number;
}

export function auditLineFrom(row: Selectable<AuditTable>): AuditLine {
  return {
    number: row.number,
    at: row.at,
    requestId: row.request_id,
    operation: row.operation,
    teamId: row.team_id,
    actor: row.actor,
    userId: row.user_id,
    credentialId: row.credential_id,
    credentialMask: row.credential_mask,
    address: row.address,
    subjectId: row.subject_id,
    outcome: row.outcome as AuditOutcome,
    status: row.status,
    reason: row.reason,
    durationMs: row.duration_ms,
    madeIds: row.made_ids,
    count: row.count,
  };
}

export function auditRow(line: NewAuditLine, place: { readonly number: number; readonly at: number }): Selectable<AuditTable> {
  return {
    ...place,
    request_id: line.requestId,
    operation: line.operation,
    team_id: line.teamId,
    actor: line.actor,
    user_id: line.userId,
    credential_id: line.credentialId,
    credential_mask: line.credentialMask,
    address: line.address,
    subject_id: line.subjectId,
    outcome: line.outcome,
    status: line.status,
    reason: line.reason,
    duration_ms: line.durationMs,
    made_ids: line.madeIds,
    count: line.count,
  };
}
