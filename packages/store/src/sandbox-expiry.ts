import { type Kysely, sql } from "kysely";
import { recordEvents } from "./events/record-event.ts";
import { eventOfChange } from "./events/sandbox-events.ts";
import { entryFrom, LISTED_AS, type SandboxEntry } from "./sandbox.ts";
import type { Database } from "./tables.ts";

export interface Expiry {
  /** The state to move to: `killing` for sandboxes without autoPause, `pausing` for sandboxes with it. */
  readonly to: "killing" | "pausing";
  readonly event: string;
  readonly actor: string;
  readonly owner: string;
  readonly now: number;
  readonly limit: number;
}

/**
 * Moves running sandboxes whose timeout has passed to another state, the longest overdue first. It is one statement, so that hundreds of
 * sandboxes that expire together do not wait for each other. Returns the sandboxes that this call moved.
 */
export async function expireSandboxes(tx: Kysely<Database>, expiry: Expiry): Promise<readonly SandboxEntry[]> {
  const { now, to } = expiry;
  const rows = await tx
    .updateTable("sandboxes")
    .set({ state: to, state_changed_at: now, listed: LISTED_AS[to], owner: expiry.owner })
    .set((eb) => ({ version: eb("version", "+", 1) }))
    .$if(to === "killing", (update) => update.set({ end_reason: "timeout", end_actor: expiry.actor }))
    .where("id", "in", (eb) =>
      eb
        .selectFrom("sandboxes")
        .where("state", "=", sql.lit("running"))
        .where("end_at", "<=", now)
        .where("auto_pause", "=", to === "pausing" ? 1 : 0)
        .where((or) => or.or([or("expire_not_before", "is", null), or("expire_not_before", "<=", now)]))
        .orderBy("end_at")
        .limit(expiry.limit)
        .select("id"),
    )
    // Checked again, because this statement may have waited for the row lock of another process.
    .where("state", "=", sql.lit("running"))
    .where("end_at", "<=", now)
    .returningAll()
    .execute();
  const lines = rows.map((row) => ({
    sandbox_id: row.id,
    version: row.version,
    at: now,
    from_state: "running",
    to_state: to,
    event: expiry.event,
    reason: "timeout",
    actor: expiry.actor,
  }));
  if (lines.length > 0) await tx.insertInto("sandbox_events").values(lines).execute();
  const change = { from: "running", to, now, actor: expiry.actor, reason: "timeout" } as const;
  await recordEvents(
    tx,
    rows.map((row) => eventOfChange(row, change)).filter((event) => event !== undefined),
  );
  return rows.map(entryFrom);
}
