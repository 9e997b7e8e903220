import type { SandboxOptions } from "@skerry/wire/node";
import type { Selectable } from "kysely";
import type { EventTable } from "../tables.ts";
import type { EventType } from "./event-type.ts";

/** A change that its team may learn of. It contains no secret. */
export interface NewEvent {
  readonly teamId: string;
  readonly type: EventType;
  /** The id of what changed. */
  readonly subjectId: string;
  readonly at: number;
  /** Default: the caller of the request that is being served, or else the platform. */
  readonly actor?: string;
  readonly reason?: string | undefined;
  readonly facts: EventFacts;
}

export interface StoredEvent extends Required<Omit<NewEvent, "reason">> {
  /** Stays the same in every delivery. */
  readonly id: string;
  /** Counts the events of all teams. */
  readonly number: number;
  /** Counts the events of the team, without a gap. */
  readonly sequence: number;
  readonly reason: string | undefined;
  readonly requestId: string | undefined;
}

/** What a receiver needs besides the ids. Texts that callers chose are bounded where they came in. */
export interface EventFacts {
  readonly name?: string | undefined;
  readonly templateId?: string | undefined;
  readonly buildId?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly isPublic?: boolean | undefined;
  readonly version?: number | undefined;
  readonly sizeMb?: number | undefined;
  /** The new one of a member. */
  readonly role?: string | undefined;
  readonly sandbox?: SandboxFacts;
  /** What a sandbox was saved as. */
  readonly snapshot?: { readonly templateId: string; readonly buildId: string };
}

export interface SandboxFacts {
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly cpuCount: number;
  readonly memoryMb: number;
  /** The start of this run, and null before the first one. */
  readonly startedAt: number | null;
  /** Length of the run that is over. */
  readonly ranMs?: number;
  /** The new end of the sandbox. */
  readonly endAt?: number | null;
  readonly options: SandboxOptions;
  readonly killReason?: string;
}

export function eventFrom(row: Selectable<EventTable>): StoredEvent {
  return {
    id: row.id,
    number: row.number,
    sequence: row.sequence,
    teamId: row.team_id,
    type: row.type as EventType,
    subjectId: row.subject_id,
    at: row.at,
    actor: row.actor,
    reason: row.reason ?? undefined,
    requestId: row.request_id ?? undefined,
    facts: JSON.parse(row.facts) as EventFacts,
  };
}
