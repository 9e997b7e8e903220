import type { Kysely, Selectable } from "kysely";
import type { Database, IdempotencyTable } from "./tables.ts";

/** An operation that was requested with an idempotency key. */
export interface KeyRecord {
  readonly teamId: string;
  readonly key: string;
  /** Identifies the operation and its body: one key must not be used for two different requests. */
  readonly fingerprint: string;
  /** The API process that carries the operation out. */
  readonly owner: string;
  readonly createdAt: number;
  /** The ids of what the operation creates, chosen before it begins. After the end of the process they lead to its result. */
  readonly subjects: readonly string[];
  /** Undefined until the operation is complete. */
  readonly answer: { readonly status: number; readonly body: string } | undefined;
}

/** One attempt of an operation. Attempts of other processes and later attempts have other subjects. */
type Try = Pick<KeyRecord, "teamId" | "key" | "owner" | "subjects">;

export type NewKeyRecord = Omit<KeyRecord, "answer">;

/** Answers that are returned again when a request is repeated with its key. */
export class IdempotencyRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Reserves the key for a request. Returns undefined on success, otherwise the existing record. Records from before `expired` are ignored. */
  async reserve(record: NewKeyRecord, expired: number): Promise<KeyRecord | undefined> {
    await this.#db
      .deleteFrom("idempotency_keys")
      .where("team_id", "=", record.teamId)
      .where("key", "=", record.key)
      .where("created_at", "<", expired)
      .execute();
    const added = await this.#db
      .insertInto("idempotency_keys")
      .values({
        team_id: record.teamId,
        key: record.key,
        fingerprint: record.fingerprint,
        owner: record.owner,
        created_at: record.createdAt,
        subjects: JSON.stringify(record.subjects),
        status: null,
        body: null,
      })
      .onConflict((conflict) => conflict.columns(["team_id", "key"]).doNothing())
      .executeTakeFirst();
    if (added.numInsertedOrUpdatedRows === 1n) return undefined;
    return (await this.find(record.teamId, record.key)) ?? (await this.reserve(record, expired));
  }

  async find(teamId: string, key: string): Promise<KeyRecord | undefined> {
    const row = await this.#db
      .selectFrom("idempotency_keys")
      .where("team_id", "=", teamId)
      .where("key", "=", key)
      .selectAll()
      .executeTakeFirst();
    return row && recordFrom(row);
  }

  async finish(record: Try, answer: { status: number; body: string }): Promise<void> {
    await this.#db
      .updateTable("idempotency_keys")
      .set(answer)
      .where("team_id", "=", record.teamId)
      .where("key", "=", record.key)
      .where("owner", "=", record.owner)
      .where("subjects", "=", JSON.stringify(record.subjects))
      .execute();
  }

  /** Releases the key after a failure: the next request with this key is the first one again. */
  async release(record: Try): Promise<void> {
    await this.#db
      .deleteFrom("idempotency_keys")
      .where("team_id", "=", record.teamId)
      .where("key", "=", record.key)
      .where("owner", "=", record.owner)
      .where("subjects", "=", JSON.stringify(record.subjects))
      .where("status", "is", null)
      .execute();
  }

  /** Takes over the operation of a dead process, with other subjects. Returns false when another process was faster. */
  async takeOver(record: KeyRecord, by: { readonly owner: string; readonly subjects: readonly string[] }): Promise<boolean> {
    const updated = await this.#db
      .updateTable("idempotency_keys")
      .set({ owner: by.owner, subjects: JSON.stringify(by.subjects) })
      .where("team_id", "=", record.teamId)
      .where("key", "=", record.key)
      .where("owner", "=", record.owner)
      .where("subjects", "=", JSON.stringify(record.subjects))
      .where("status", "is", null)
      .executeTakeFirst();
    return updated.numUpdatedRows === 1n;
  }

  async forget(before: number): Promise<void> {
    await this.#db.deleteFrom("idempotency_keys").where("created_at", "<", before).execute();
  }
}

function recordFrom(row: Selectable<IdempotencyTable>): KeyRecord {
  return {
    teamId: row.team_id,
    key: row.key,
    fingerprint: row.fingerprint,
    owner: row.owner,
    createdAt: row.created_at,
    subjects: JSON.parse(row.subjects) as string[],
    answer: row.status === null ? undefined : { status: row.status, body: row.body ?? "" },
  };
}
