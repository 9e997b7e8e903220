// What the process that delivers a webhook reads and writes. One process at a time holds the lease of a webhook. A process that was cut off
// delivers what it had not recorded once more, so each event arrives at least once.

import { type Kysely, sql } from "kysely";
import type { Database } from "../tables.ts";
import { type Delivery, deliveryFrom, type OwnedWebhook, webhookFrom } from "./webhook.ts";

export interface Lease {
  /** This run of the process: the name of the process, a slash, and more. */
  readonly owner: string;
  readonly now: number;
  readonly until: number;
}

export interface FailedDelivery {
  readonly sequence: number;
  readonly attempts: number;
  readonly firstAt: number;
  readonly nextAt: number;
  readonly isDead: boolean;
  readonly error: string;
}

/** The result of some deliveries of one webhook. */
export interface DeliveryReport {
  readonly delivered: readonly number[];
  readonly failed: readonly FailedDelivery[];
  /** The events up to here were handed over, when the cursor is still at `from`. */
  readonly cursor: { readonly from: number; readonly to: number };
  /** The state of the endpoint: undefined for one that works. */
  readonly failing:
    | { readonly failures: number; readonly since: number; readonly retryAt: number; readonly error: string; readonly disable?: string }
    | undefined;
  readonly skipped: number;
  readonly now: number;
}

export class DeliveryRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Takes the enabled webhooks that nobody holds, and renews the leases of this owner. Returns what it holds. */
  async lease({ owner, now, until }: Lease): Promise<readonly { readonly id: string; readonly teamId: string }[]> {
    // An earlier run of this process does not come back.
    const own = owner.slice(0, owner.indexOf("/") + 1);
    const isLeft = sql`(substr(owner, 1, ${own.length}) = ${own} and owner <> ${owner})`;
    const isDue = sql<boolean>`(${isLeft} or owner is null or lease_until <= ${now} or (owner = ${owner} and lease_until <= ${now + (until - now) / 2}))`;
    const enabled = () => this.#db.selectFrom("webhooks").where("enabled", "=", 1);
    // Looks first: it is called often, and mostly there is nothing to write.
    if ((await enabled().where(isDue).select("id").limit(1).executeTakeFirst()) !== undefined) {
      await this.#db.updateTable("webhooks").set({ owner, lease_until: until }).where("enabled", "=", 1).where(isDue).execute();
    }
    const rows = await enabled().where("owner", "=", owner).where("lease_until", ">", now).select(["id", "team_id"]).execute();
    return rows.map((row) => ({ id: row.id, teamId: row.team_id }));
  }

  /** Lets other processes take the webhooks at once. */
  async release(owner: string): Promise<void> {
    await this.#db.updateTable("webhooks").set({ owner: null, lease_until: 0 }).where("owner", "=", owner).execute();
  }

  /** Undefined when this owner does not hold the webhook any more, or it was disabled. */
  async findHeld(id: string, owner: string): Promise<OwnedWebhook | undefined> {
    const query = this.#db.selectFrom("webhooks").where("id", "=", id).where("owner", "=", owner).where("enabled", "=", 1);
    const row = await query.selectAll().executeTakeFirst();
    return row && webhookFrom(row);
  }

  /** Pending deliveries that are due, the longest due first. */
  async listDue(id: string, before: number, limit: number): Promise<readonly Delivery[]> {
    const rows = await this.#pending(id)
      .where("next_at", "<=", before)
      .orderBy("next_at")
      .orderBy("sequence")
      .limit(limit)
      .selectAll()
      .execute();
    return rows.map(deliveryFrom);
  }

  async countPending(id: string): Promise<number> {
    const { count } = await this.#pending(id)
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** Of all enabled webhooks: the failed deliveries that wait, and the events that were not handed over yet, of any type. */
  async queue(): Promise<{ readonly pending: number; readonly behind: number }> {
    const { pending } = await this.#db
      .selectFrom("webhooks")
      .innerJoin("webhook_deliveries", "webhook_deliveries.webhook_id", "webhooks.id")
      .where("webhooks.enabled", "=", 1)
      .where("webhook_deliveries.state", "=", "pending")
      .select((eb) => eb.fn.countAll<number>().as("pending"))
      .executeTakeFirstOrThrow();
    const { behind } = await this.#db
      .selectFrom("webhooks")
      .innerJoin("event_counters", "event_counters.scope", "webhooks.team_id")
      .where("webhooks.enabled", "=", 1)
      .select(sql<number | null>`sum(event_counters.last - webhooks.cursor)`.as("behind"))
      .executeTakeFirstOrThrow();
    return { pending: Number(pending), behind: Number(behind ?? 0) };
  }

  /** When the next pending delivery is due. */
  async nextDue(id: string): Promise<number | undefined> {
    const row = await this.#pending(id).select("next_at").orderBy("next_at").limit(1).executeTakeFirst();
    return row?.next_at;
  }

  async report(hook: Pick<OwnedWebhook, "id" | "failures">, report: DeliveryReport): Promise<void> {
    const { delivered, failed, failing, now } = report;
    await this.#db.transaction().execute(async (tx) => {
      if (delivered.length > 0) {
        await tx.deleteFrom("webhook_deliveries").where("webhook_id", "=", hook.id).where("sequence", "in", delivered).execute();
      }
      for (const delivery of failed) await writeFailure(tx, hook.id, delivery);
      const pending = tx.updateTable("webhook_deliveries").where("webhook_id", "=", hook.id).where("state", "=", "pending");
      if (failing?.disable !== undefined) await pending.set({ state: "dead" }).execute();
      // What waited because the endpoint was away need not wait any longer.
      else if (!failing && hook.failures > 0) await pending.set({ next_at: now }).execute();
      await tx
        .updateTable("webhooks")
        .set({
          failures: failing?.failures ?? 0,
          failing_since: failing?.since ?? null,
          retry_at: failing?.retryAt ?? null,
          ...(failing ? { last_error: failing.error } : {}),
          ...(delivered.length > 0 ? { last_delivered_at: now } : {}),
          ...(failing?.disable === undefined ? {} : { enabled: 0, disabled_reason: failing.disable }),
        })
        .set((eb) => ({ skipped: eb("skipped", "+", report.skipped) }))
        .where("id", "=", hook.id)
        .execute();
      const { from, to } = report.cursor;
      if (to > from) await tx.updateTable("webhooks").set({ cursor: to }).where("id", "=", hook.id).where("cursor", "=", from).execute();
    });
  }

  #pending(id: string) {
    return this.#db.selectFrom("webhook_deliveries").where("webhook_id", "=", id).where("state", "=", "pending");
  }
}

async function writeFailure(tx: Kysely<Database>, webhookId: string, delivery: FailedDelivery): Promise<void> {
  const { sequence, attempts, firstAt, nextAt, isDead, error } = delivery;
  const values = { state: isDead ? "dead" : "pending", attempts, first_at: firstAt, next_at: nextAt, error };
  await tx
    .insertInto("webhook_deliveries")
    .values({ webhook_id: webhookId, sequence, ...values })
    .onConflict((conflict) => conflict.columns(["webhook_id", "sequence"]).doUpdateSet(values))
    .execute();
}
