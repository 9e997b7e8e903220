import type { Kysely } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import { recordEvent } from "./events/record-event.ts";
import type { Role } from "./identity.ts";
import type { Database } from "./tables.ts";
import type { User } from "./users.ts";

export interface Member {
  readonly user: Omit<User, "createdAt">;
  readonly role: Role;
  /** 0: since the first start. */
  readonly since: number;
}

export interface MemberId {
  readonly teamId: string;
  readonly userId: string;
}

export interface MemberChange extends MemberId {
  /** Whether whoever asks may make, change and remove owners. */
  readonly managesOwners: boolean;
}

/** `missing`: there is no such member or user. */
type Refusal = "missing" | "last_owner" | "owners_only";

/** Who is in which team. A change takes effect with the next request of every process. */
export class MemberRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** In the order in which they joined. */
  async list(teamId: string): Promise<readonly Member[]> {
    const rows = await this.#select().where("team_members.team_id", "=", teamId).execute();
    return rows.map(memberFrom);
  }

  async find({ teamId, userId }: MemberId): Promise<Member | undefined> {
    const query = this.#select().where("team_members.team_id", "=", teamId).where("team_members.user_id", "=", userId);
    const row = await query.executeTakeFirst();
    return row && memberFrom(row);
  }

  /** Gives a member another role, or makes a user a member. Refused when that would leave the team without an owner. */
  async put(member: MemberChange & { readonly role: Role; readonly now: number; readonly mayAdd: boolean }): Promise<"put" | Refusal> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, member.teamId);
      const before = await roleOf(tx, member);
      if (before === undefined && !member.mayAdd) return "missing";
      if (!member.managesOwners && (before === "owner" || member.role === "owner")) return "owners_only";
      if (member.role !== "owner" && (await isLastOwner(tx, member))) return "last_owner";
      return (await putMember(tx, member)) ? "put" : "missing";
    });
  }

  /** Removes a member and the keys that the member signs in with; `withKeys`: also the other keys of the team that the member made. */
  async remove(member: MemberChange & { readonly withKeys: boolean; readonly now: number }): Promise<"removed" | Refusal> {
    const { teamId, userId } = member;
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, teamId);
      if (!member.managesOwners && (await roleOf(tx, member)) === "owner") return "owners_only";
      if (await isLastOwner(tx, member)) return "last_owner";
      if (!(await removeMember(tx, member))) return "missing";
      await tx
        .deleteFrom("api_keys")
        .where("team_id", "=", teamId)
        .where((eb) => eb.or([eb("member_id", "=", userId), ...(member.withKeys ? [eb("created_by", "=", userId)] : [])]))
        .execute();
      return "removed";
    });
  }

  #select() {
    return this.#db
      .selectFrom("team_members")
      .innerJoin("users", "users.id", "team_members.user_id")
      .select(["users.id", "users.name", "users.email", "team_members.role", "team_members.created_at"])
      .orderBy("team_members.created_at")
      .orderBy("users.id");
  }
}

/** A change of one member. */
interface Change extends MemberId {
  readonly now: number;
  /** Default: the caller of the request. */
  readonly actor?: string;
  readonly reason?: string;
}

/** Adds a member or changes the role. The caller has locked the team. Returns whether there is such a user. */
export async function putMember(tx: Kysely<Database>, change: Change & { readonly role: Role }): Promise<boolean> {
  const { teamId, userId, role, now } = change;
  const user = await tx.selectFrom("users").where("id", "=", userId).select(["id", "name"]).executeTakeFirst();
  if (!user) return false;
  const before = await roleOf(tx, change);
  const other = await tx.selectFrom("team_members").where("user_id", "=", userId).select("team_id").executeTakeFirst();
  await tx
    .insertInto("team_members")
    .values({ team_id: teamId, user_id: userId, role, is_default: other ? 0 : 1, created_at: now })
    .onConflict((conflict) => conflict.columns(["user_id", "team_id"]).doUpdateSet({ role }))
    .execute();
  if (before !== role) {
    const type = before === undefined ? "member.lifecycle.created" : "member.lifecycle.updated";
    await recordEvent(tx, { ...causeOf(change), type, facts: { name: user.name, role } });
  }
  return true;
}

/** Ends a membership. The caller has locked the team, and deletes the keys of the member. Returns whether there was one. */
export async function removeMember(tx: Kysely<Database>, change: Change): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom("team_members")
    .where("team_id", "=", change.teamId)
    .where("user_id", "=", change.userId)
    .executeTakeFirstOrThrow();
  if (numDeletedRows === 0n) return false;
  await recordEvent(tx, { ...causeOf(change), type: "member.lifecycle.deleted", facts: {} });
  return true;
}

function causeOf({ teamId, userId, now, actor, reason }: Change) {
  return { teamId, subjectId: userId, at: now, reason, ...(actor === undefined ? {} : { actor }) };
}

async function roleOf(tx: Kysely<Database>, { teamId, userId }: MemberId): Promise<string | undefined> {
  const row = await tx
    .selectFrom("team_members")
    .where("team_id", "=", teamId)
    .where("user_id", "=", userId)
    .select("role")
    .executeTakeFirst();
  return row?.role;
}

/** Whether the user is an owner of the team, and there is no other one. The caller has locked the team. */
export async function isLastOwner(tx: Kysely<Database>, { teamId, userId }: MemberId): Promise<boolean> {
  const owners = await tx.selectFrom("team_members").where("team_id", "=", teamId).where("role", "=", "owner").select("user_id").execute();
  return owners.length === 1 && owners[0]?.user_id === userId;
}

type MemberRow = { id: string; name: string; email: string | null; role: string; created_at: number };

function memberFrom({ id, name, email, role, created_at }: MemberRow): Member {
  return { user: { id, name, email }, role: role as Role, since: created_at };
}
