// Which changes of a sandbox its team learns of. States that callers do not see, and changes that came to nothing, make no event.

import type { Selectable } from "kysely";
import { optionsFrom, type SandboxState } from "../sandbox.ts";
import type { SandboxTable } from "../tables.ts";
import type { NewEvent, SandboxFacts } from "./event.ts";
import type { EventType } from "./event-type.ts";

type Row = Selectable<SandboxTable>;

interface Change {
  readonly from: SandboxState;
  readonly to: SandboxState;
  readonly now: number;
  readonly actor: string;
  readonly reason?: string;
}

const RUNNING_STATES: readonly SandboxState[] = ["running", "snapshotting", "pausing"];

/** The event of a change of state. `row` is the sandbox after the change. */
export function eventOfChange(row: Row, change: Change): NewEvent | undefined {
  const type = typeOf(change);
  if (type === undefined) return undefined;
  const { now, actor, reason } = change;
  const ended = type === "sandbox.lifecycle.killed" || type === "sandbox.lifecycle.paused";
  const ran = ended && RUNNING_STATES.includes(change.from) ? { ranMs: Math.max(0, now - (row.started_at ?? now)) } : {};
  const killed = type === "sandbox.lifecycle.killed" ? { killReason: reason ?? "unknown" } : {};
  const end = ended ? {} : { endAt: row.end_at };
  return sandboxEvent(row, { type, at: now, actor, reason, facts: { ...ran, ...killed, ...end } });
}

/** The event of a change of the timeout, or of the network rules. */
export function eventOfUpdate(row: Row, change: { readonly now: number; readonly endAt?: number }): NewEvent {
  const facts = change.endAt === undefined ? {} : { endAt: change.endAt };
  return sandboxEvent(row, { type: "sandbox.lifecycle.updated", at: change.now, facts });
}

export function sandboxEvent(
  row: Row,
  event: Pick<NewEvent, "type" | "at" | "reason"> & { readonly actor?: string; readonly facts?: Partial<SandboxFacts> },
): NewEvent {
  const { facts, actor, ...rest } = event;
  return {
    ...rest,
    ...(actor === undefined ? {} : { actor }),
    teamId: row.team_id,
    subjectId: row.id,
    facts: {
      templateId: row.template_id,
      buildId: row.build_id,
      sandbox: {
        metadata: row.metadata === null ? null : (JSON.parse(row.metadata) as Record<string, string>),
        cpuCount: row.cpu_count,
        memoryMb: row.memory_mb,
        startedAt: row.started_at,
        options: optionsFrom(row),
        ...facts,
      },
    },
  };
}

function typeOf({ from, to }: Change): EventType | undefined {
  switch (to) {
    case "running":
      if (from === "starting") return "sandbox.lifecycle.created";
      return from === "resuming" ? "sandbox.lifecycle.resumed" : undefined;
    case "paused":
      return RUNNING_STATES.includes(from) ? "sandbox.lifecycle.paused" : undefined;
    case "killing":
    case "ended":
      // A sandbox that was never up, or whose end was announced at its beginning.
      return from === "starting" || from === "killing" ? undefined : "sandbox.lifecycle.killed";
    default:
      return undefined;
  }
}
