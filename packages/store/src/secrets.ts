import type { Kysely, Selectable } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { NewEvent } from "./events/event.ts";
import { recordEvent } from "./events/record-event.ts";
import type { Database, SecretTable } from "./tables.ts";

/** A secret without its value. */
export interface StoredSecret {
  readonly id: string;
  readonly teamId: string;
  readonly name: string;
  /** Grows by one with each new value. */
  readonly version: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** An encrypted value, and the id of the key that encrypted it. */
export interface SealedValue {
  readonly sealed: string;
  readonly keyId: string;
}

export type SecretReference = { readonly id: string } | { readonly name: string };

/** The secrets of teams. Values come and go encrypted. */
export class SecretRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Adds a secret unless its name is taken, or the team has `max` secrets. */
  async add(secret: StoredSecret & SealedValue, max: number): Promise<"added" | "taken" | "full"> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, secret.teamId);
      const { count } = await tx
        .selectFrom("secrets")
        .where("team_id", "=", secret.teamId)
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto("secrets")
        .values(rowOf(secret))
        .onConflict((conflict) => conflict.columns(["team_id", "name"]).doNothing())
        .executeTakeFirstOrThrow();
      if (numInsertedOrUpdatedRows === 0n) return "taken";
      if (Number(count) < max) {
        await recordEvent(tx, secretEvent(secret, { type: "secret.lifecycle.created", at: secret.createdAt }));
        return "added";
      }
      await tx.deleteFrom("secrets").where("id", "=", secret.id).execute();
      return "full";
    });
  }

  async find(teamId: string, reference: SecretReference): Promise<StoredSecret | undefined> {
    const query = this.#db.selectFrom("secrets").where("team_id", "=", teamId);
    const row = await ("id" in reference ? query.where("id", "=", reference.id) : query.where("name", "=", reference.name))
      .selectAll()
      .executeTakeFirst();
    return row && secretFrom(row);
  }

  /** Those of the names that the team has secrets with, and their encrypted values. */
  async findNamed(teamId: string, names: readonly string[]): Promise<readonly (StoredSecret & SealedValue)[]> {
    if (names.length === 0) return [];
    const query = this.#db.selectFrom("secrets").where("team_id", "=", teamId).where("name", "in", names).selectAll();
    return (await query.execute()).map((row) => ({ ...secretFrom(row), sealed: row.sealed, keyId: row.key_id }));
  }

  /** Newest first. */
  async list(
    teamId: string,
    page: { readonly limit: number; readonly after?: { readonly createdAt: number; readonly id: string } },
  ): Promise<readonly StoredSecret[]> {
    const { limit, after } = page;
    let query = this.#db.selectFrom("secrets").where("team_id", "=", teamId).selectAll();
    if (after) {
      query = query.where((eb) =>
        eb.or([eb("created_at", "<", after.createdAt), eb.and([eb("created_at", "=", after.createdAt), eb("id", ">", after.id)])]),
      );
    }
    return (await query.orderBy("created_at", "desc").orderBy("id").limit(limit).execute()).map(secretFrom);
  }

  /** Gives the secret of this version a new value. Returns undefined when it has another version by now, or does not exist. */
  async replace(
    secret: Pick<StoredSecret, "id" | "teamId" | "version">,
    change: SealedValue & { readonly metadata: StoredSecret["metadata"] | undefined; readonly now: number },
  ): Promise<StoredSecret | undefined> {
    return await this.#db.transaction().execute(async (tx) => {
      const row = await tx
        .updateTable("secrets")
        .set({
          version: secret.version + 1,
          sealed: change.sealed,
          key_id: change.keyId,
          updated_at: change.now,
          ...(change.metadata ? { metadata: JSON.stringify(change.metadata) } : {}),
        })
        .where("id", "=", secret.id)
        .where("team_id", "=", secret.teamId)
        .where("version", "=", secret.version)
        .returningAll()
        .executeTakeFirst();
      if (!row) return undefined;
      await recordEvent(tx, secretEvent(secretFrom(row), { type: "secret.lifecycle.updated", at: change.now }));
      return secretFrom(row);
    });
  }

  /** Returns whether the team had such a secret. */
  async remove(teamId: string, reference: SecretReference, now: number): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const query = tx.deleteFrom("secrets").where("team_id", "=", teamId);
      const row = await ("id" in reference ? query.where("id", "=", reference.id) : query.where("name", "=", reference.name))
        .returningAll()
        .executeTakeFirst();
      if (row) await recordEvent(tx, secretEvent(secretFrom(row), { type: "secret.lifecycle.deleted", at: now }));
      return row !== undefined;
    });
  }

  /** Secrets of all teams, by id, whose values are encrypted with another key. */
  async listOfOtherKeys(
    keyId: string,
    page: { readonly afterId: string; readonly limit: number },
  ): Promise<readonly (StoredSecret & SealedValue)[]> {
    const rows = await this.#db
      .selectFrom("secrets")
      .where("key_id", "!=", keyId)
      .where("id", ">", page.afterId)
      .selectAll()
      .orderBy("id")
      .limit(page.limit)
      .execute();
    return rows.map((row) => ({ ...secretFrom(row), sealed: row.sealed, keyId: row.key_id }));
  }

  /** Replaces the encrypted form of a value, unless the value has changed meanwhile. */
  async reseal(secret: Pick<StoredSecret, "id"> & SealedValue, by: SealedValue): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("secrets")
      .set({ sealed: by.sealed, key_id: by.keyId })
      .where("id", "=", secret.id)
      .where("sealed", "=", secret.sealed)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }
}

function rowOf(secret: StoredSecret & SealedValue): Selectable<SecretTable> {
  return {
    id: secret.id,
    team_id: secret.teamId,
    name: secret.name,
    version: secret.version,
    metadata: JSON.stringify(secret.metadata),
    sealed: secret.sealed,
    key_id: secret.keyId,
    created_at: secret.createdAt,
    updated_at: secret.updatedAt,
  };
}

function secretFrom(row: Selectable<SecretTable>): StoredSecret {
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    version: row.version,
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function secretEvent(secret: StoredSecret, event: Pick<NewEvent, "type" | "at">): NewEvent {
  return { ...event, teamId: secret.teamId, subjectId: secret.id, facts: { name: secret.name, version: secret.version } };
}
