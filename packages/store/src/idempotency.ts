import type { Kysely, Selectable } from "kysely";
import type { Database, IdempotencyTable } from "./tables.ts";

/** What is known of an operation that was asked for with a key. */
export interface KeyRecord {
  readonly teamId: string;
  readonly key: string;
  /** Of the operation and its body: the same key must not stand for two requests. */
  readonly fingerprint: string;
  /** The control process that does it. */
  readonly owner: string;
  readonly createdAt: number;
  /** The ids of what it makes, chosen before it begins: after the end of its process they say what became of it. */
  readonly subjects: readonly string[];
  /** Undefined until it is done. */
  readonly answer: { readonly status: number; readonly body: string } | undefined;
}

/** One try of an operation: another process's, or a later one of the same process, has other subjects. */
type Try = Pick<KeyRecord, "teamId" | "key" | "owner" | "subjects">;

export type NewKeyRecord = Omit<KeyRecord, "answer">;

/** Answers that are given again when a request is repeated with its key. */
export class IdempotencyRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Undefined when the key is taken for this request by this call; what there is otherwise. Entries from before `expired` count as none. */
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

  /** Nothing came of it: the next request with this key is the first again. */
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

  /** True when the work of a process that is gone is this one's now, with other subjects. */
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
