// The outbox of events. An event is written by the transaction of its change: neither exists without the other, whatever ends in between.
// It gets its number later (`EventRepository.number`), because transactions do not commit in the order in which they begin.

import { randomUUID } from "node:crypto";
import { currentRequest } from "@skerry/base";
import type { Kysely, KyselyPlugin, PluginTransformQueryArgs, PluginTransformResultArgs, QueryResult, UnknownRow } from "kysely";
import type { Database } from "../tables.ts";
import type { NewEvent } from "./event.ts";

/** Marks a database in which no events are recorded. Transactions inherit the mark. */
export class WithoutEvents implements KyselyPlugin {
  transformQuery({ node }: PluginTransformQueryArgs) {
    return node;
  }
  async transformResult({ result }: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    return result;
  }
}

const PLATFORM = "platform";

/** Precondition: `tx` is the transaction that makes the change. */
export async function recordEvents(tx: Kysely<Database>, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0 || tx.getExecutor().plugins.some((plugin) => plugin instanceof WithoutEvents)) return;
  const request = currentRequest();
  await tx
    .insertInto("event_outbox")
    .values(
      events.map((event) => ({
        id: randomUUID(),
        team_id: event.teamId,
        type: event.type,
        subject_id: event.subjectId,
        at: event.at,
        actor: event.actor ?? request?.actor ?? PLATFORM,
        reason: event.reason ?? null,
        request_id: request?.requestId ?? null,
        facts: JSON.stringify(event.facts),
      })),
    )
    .execute();
}

export async function recordEvent(tx: Kysely<Database>, event: NewEvent): Promise<void> {
  await recordEvents(tx, [event]);
}
