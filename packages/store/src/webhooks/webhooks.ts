// The webhooks of teams. What their callers may change is here; what the process that delivers writes is in deliveries.ts.

import type { Kysely } from "kysely";
import { type DialectName, lockTeam } from "../dialect/lock-team.ts";
import type { EventType } from "../events/event-type.ts";
import type { SealedValue } from "../secrets.ts";
import type { Database } from "../tables.ts";
import { DeliveryRepository } from "./deliveries.ts";
import { type Delivery, deliveryFrom, type NewWebhook, type OwnedWebhook, type Webhook, webhookFrom, webhookRow } from "./webhook.ts";

export interface WebhookChange {
  readonly name?: string | undefined;
  readonly url?: string | undefined;
  /** Null: all types. */
  readonly types?: readonly EventType[] | null | undefined;
  readonly enabled?: boolean | undefined;
  readonly sealed?: SealedValue;
  readonly now: number;
}

interface Of {
  readonly teamId: string;
  readonly id: string;
}

/** What a webhook has while nothing fails. */
const SOUND = { failures: 0, failing_since: null, retry_at: null, last_error: null, disabled_reason: null };

export class WebhookRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  readonly deliveries: DeliveryRepository;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
    this.deliveries = new DeliveryRepository(db);
  }

  /** Adds a webhook for the events from now on, unless the team has `max` webhooks. */
  async add(hook: NewWebhook & SealedValue, max: number): Promise<Webhook | "full"> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, hook.teamId);
      const { count } = await tx
        .selectFrom("webhooks")
        .where("team_id", "=", hook.teamId)
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      if (Number(count) >= max) return "full";
      const counter = await tx.selectFrom("event_counters").where("scope", "=", hook.teamId).select("last").executeTakeFirst();
      const row = webhookRow({ ...hook, cursor: counter?.last ?? 0 });
      await tx.insertInto("webhooks").values(row).execute();
      return webhookFrom(row);
    });
  }

  async find({ teamId, id }: Of): Promise<OwnedWebhook | undefined> {
    const row = await this.#db.selectFrom("webhooks").where("id", "=", id).where("team_id", "=", teamId).selectAll().executeTakeFirst();
    return row && webhookFrom(row);
  }

  /** Oldest first. A team has few. */
  async list(teamId: string): Promise<readonly Webhook[]> {
    const query = this.#db.selectFrom("webhooks").where("team_id", "=", teamId).selectAll();
    return (await query.orderBy("created_at").orderBy("id").execute()).map(webhookFrom);
  }

  /** Another address, or enabling it, makes a failing webhook begin anew. */
  async update({ teamId, id }: Of, change: WebhookChange): Promise<Webhook | undefined> {
    const { name, url, types, enabled, sealed, now } = change;
    const row = await this.#db
      .updateTable("webhooks")
      .set({
        updated_at: now,
        ...(name === undefined ? {} : { name }),
        ...(types === undefined ? {} : { types: types === null ? null : JSON.stringify(types) }),
        ...(url === undefined ? {} : { url }),
        ...(enabled === undefined ? {} : { enabled: Number(enabled) }),
        ...(url !== undefined || enabled === true ? SOUND : {}),
        ...(sealed ? { sealed: sealed.sealed, key_id: sealed.keyId } : {}),
      })
      .where("id", "=", id)
      .where("team_id", "=", teamId)
      .returningAll()
      .executeTakeFirst();
    return row && webhookFrom(row);
  }

  async remove({ teamId, id }: Of): Promise<boolean> {
    const query = this.#db.deleteFrom("webhooks").where("id", "=", id).where("team_id", "=", teamId);
    return (await query.executeTakeFirstOrThrow()).numDeletedRows > 0n;
  }

  /** Delivers the events after a sequence once more. Deliveries after it that have failed are forgotten, because they come again. */
  async rewind({ teamId, id }: Of, to: { readonly after: number; readonly now: number }): Promise<Webhook | undefined> {
    return await this.#db.transaction().execute(async (tx) => {
      const row = await tx
        .updateTable("webhooks")
        .set({ cursor: to.after, updated_at: to.now, retry_at: null })
        .where("id", "=", id)
        .where("team_id", "=", teamId)
        .where("cursor", ">=", to.after)
        .returningAll()
        .executeTakeFirst();
      if (!row) return undefined;
      await tx.deleteFrom("webhook_deliveries").where("webhook_id", "=", id).where("sequence", ">", to.after).execute();
      return webhookFrom(row);
    });
  }

  /** Tries dead deliveries once more, and pending ones at once. Returns how many. */
  async revive({ teamId, id }: Of, now: number): Promise<number> {
    const { numUpdatedRows } = await this.#db
      .updateTable("webhook_deliveries")
      .set({ state: "pending", attempts: 0, first_at: now, next_at: now })
      .where("webhook_id", "in", (eb) => eb.selectFrom("webhooks").where("id", "=", id).where("team_id", "=", teamId).select("id"))
      .executeTakeFirstOrThrow();
    return Number(numUpdatedRows);
  }

  /** Failed deliveries, the oldest event first. */
  async listDeliveries(id: string, page: { readonly after: number; readonly limit: number }): Promise<readonly Delivery[]> {
    const rows = await this.#db
      .selectFrom("webhook_deliveries")
      .where("webhook_id", "=", id)
      .where("sequence", ">", page.after)
      .orderBy("sequence")
      .limit(page.limit)
      .selectAll()
      .execute();
    return rows.map(deliveryFrom);
  }

  /** Webhooks of all teams whose secrets are encrypted with another key. */
  async listOfOtherKeys(keyId: string, page: { readonly afterId: string; readonly limit: number }): Promise<readonly OwnedWebhook[]> {
    const query = this.#db.selectFrom("webhooks").where("key_id", "!=", keyId).where("id", ">", page.afterId);
    return (await query.selectAll().orderBy("id").limit(page.limit).execute()).map(webhookFrom);
  }

  /** Replaces the encrypted form of a secret, unless the secret has changed meanwhile. */
  async reseal(hook: OwnedWebhook, by: SealedValue): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("webhooks")
      .set({ sealed: by.sealed, key_id: by.keyId })
      .where("id", "=", hook.id)
      .where("sealed", "=", hook.sealed)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }
}
