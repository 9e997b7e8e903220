import type { Kysely, Selectable } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import { isLastOwner, removeMember } from "./members.ts";
import { type CreatedAfter, isAfter } from "./newest-first.ts";
import type { Database } from "./tables.ts";

export interface User {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly createdAt: number;
}

export class UserRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async add(user: User): Promise<void> {
    const row = { id: user.id, name: user.name, email: user.email, created_at: user.createdAt };
    await this.#db.insertInto("users").values(row).execute();
  }

  async find(id: string): Promise<User | undefined> {
    const row = await this.#db.selectFrom("users").where("id", "=", id).selectAll().executeTakeFirst();
    return row && userFrom(row);
  }

  /** Newest first. */
  async list({ limit, after }: { readonly limit: number; readonly after?: CreatedAfter }): Promise<readonly User[]> {
    let query = this.#db.selectFrom("users").selectAll();
    if (after) query = query.where((eb) => isAfter(eb, after));
    return (await query.orderBy("created_at", "desc").orderBy("id").limit(limit).execute()).map(userFrom);
  }

  /** Returns whether there is such a user. */
  async rename(id: string, name: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#db.updateTable("users").set({ name }).where("id", "=", id).executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Deletes a user with memberships, access tokens and the keys that the user signs in with. Refused for the last owner of a team, and for the user of the secrets file, whom every start adds again. */
  async remove(id: string, now: number): Promise<"removed" | "missing" | "seeded" | { readonly lastOwnerOf: string }> {
    return await this.#db.transaction().execute(async (tx) => {
      const user = await tx.selectFrom("users").where("id", "=", id).select("id").executeTakeFirst();
      if (!user) return "missing";
      const seeded = tx.selectFrom("access_tokens").where("user_id", "=", id).where("is_seeded", "=", 1).select("id");
      if (await seeded.executeTakeFirst()) return "seeded";
      // In one order for all transactions, so that they can't block each other.
      const teams = await tx.selectFrom("team_members").where("user_id", "=", id).select("team_id").orderBy("team_id").execute();
      for (const { team_id } of teams) {
        await lockTeam(tx, this.#dialect, team_id);
        if (await isLastOwner(tx, { teamId: team_id, userId: id })) return { lastOwnerOf: team_id };
      }
      // Locks it before the user, as a sign-in does, so that they can't block each other.
      await tx.deleteFrom("provider_users").where("user_id", "=", id).execute();
      for (const { team_id: teamId } of teams) await removeMember(tx, { teamId, userId: id, now });
      await tx.deleteFrom("access_tokens").where("user_id", "=", id).execute();
      await tx.deleteFrom("api_keys").where("member_id", "=", id).execute();
      await tx.deleteFrom("users").where("id", "=", id).execute();
      return "removed";
    });
  }
}

function userFrom(row: Selectable<Database["users"]>): User {
  return { id: row.id, name: row.name, email: row.email, createdAt: row.created_at };
}
