import type { Kysely, Selectable } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { Role, Team } from "./identity.ts";
import { putMember } from "./members.ts";
import type { Database, InvitationTable } from "./tables.ts";

export interface Invitation {
  readonly id: string;
  readonly teamId: string;
  /** For whom it is meant. It does not limit who may accept it. */
  readonly email: string | null;
  readonly role: Role;
  readonly createdBy: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export type Acceptance =
  | { readonly kind: "accepted"; readonly team: Team; readonly role: Role }
  /** The invitation stays, for somebody else. */
  | { readonly kind: "member_already"; readonly team: Team }
  | { readonly kind: "missing" };

/** Invitations to teams. Whoever has the token of one may accept it, once. */
export class InvitationRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Adds an invitation unless the team has `max` that are open. Removes the expired ones. */
  async add(invitation: Invitation & { readonly tokenHash: string }, max: number): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const { teamId, createdAt } = invitation;
      await lockTeam(tx, this.#dialect, teamId);
      await tx.deleteFrom("invitations").where("team_id", "=", teamId).where("expires_at", "<=", createdAt).execute();
      const { count } = await tx
        .selectFrom("invitations")
        .where("team_id", "=", teamId)
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      if (Number(count) >= max) return false;
      await tx.insertInto("invitations").values(rowOf(invitation)).execute();
      return true;
    });
  }

  /** The open invitations of a team, oldest first. */
  async list(teamId: string, now: number): Promise<readonly Invitation[]> {
    const rows = await this.#db
      .selectFrom("invitations")
      .where("team_id", "=", teamId)
      .where("expires_at", ">", now)
      .selectAll()
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    return rows.map(invitationFrom);
  }

  async find(teamId: string, id: string): Promise<Invitation | undefined> {
    const row = await this.#db.selectFrom("invitations").where("team_id", "=", teamId).where("id", "=", id).selectAll().executeTakeFirst();
    return row && invitationFrom(row);
  }

  /** Returns whether the team had such an invitation. */
  async remove(teamId: string, id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("invitations")
      .where("team_id", "=", teamId)
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  /** Makes the user a member and uses the invitation up. */
  async accept(tokenHash: string, { userId, now }: { readonly userId: string; readonly now: number }): Promise<Acceptance> {
    return await this.#db.transaction().execute(async (tx) => {
      const found = await tx.selectFrom("invitations").where("token_hash", "=", tokenHash).select("team_id").executeTakeFirst();
      if (!found) return { kind: "missing" };
      await lockTeam(tx, this.#dialect, found.team_id);
      const team = await tx.selectFrom("teams").where("id", "=", found.team_id).select(["id", "slug", "name"]).executeTakeFirstOrThrow();
      const member = await tx
        .selectFrom("team_members")
        .where("team_id", "=", team.id)
        .where("user_id", "=", userId)
        .select("role")
        .executeTakeFirst();
      if (member) return { kind: "member_already", team };
      const used = await tx
        .deleteFrom("invitations")
        .where("token_hash", "=", tokenHash)
        .where("expires_at", ">", now)
        .returningAll()
        .executeTakeFirst();
      if (!used) return { kind: "missing" };
      const role = used.role as Role;
      return (await putMember(tx, { teamId: team.id, userId, role, now })) ? { kind: "accepted", team, role } : { kind: "missing" };
    });
  }
}

function rowOf(invitation: Invitation & { readonly tokenHash: string }): Selectable<InvitationTable> {
  return {
    id: invitation.id,
    team_id: invitation.teamId,
    email: invitation.email,
    role: invitation.role,
    token_hash: invitation.tokenHash,
    created_by: invitation.createdBy,
    created_at: invitation.createdAt,
    expires_at: invitation.expiresAt,
  };
}

function invitationFrom(row: Selectable<InvitationTable>): Invitation {
  return {
    id: row.id,
    teamId: row.team_id,
    email: row.email,
    role: row.role as Role,
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
