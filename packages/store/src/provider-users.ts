import { currentRequest } from "@skerry/base";
import type { Kysely } from "kysely";
import { appendAuditLines } from "./audit/audit.ts";
import type { NewAuditLine } from "./audit/audit-line.ts";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { Role } from "./identity.ts";
import { putMember, removeMember } from "./members.ts";
import type { Database } from "./tables.ts";

/** A user as the identity provider names one. */
export interface ProviderSubject {
  readonly issuer: string;
  readonly subject: string;
}

export interface KnownSubject {
  readonly userId: string;
  /** When the newest token of the user was issued that was seen. */
  readonly seenIssuedAt: number;
}

export interface ProviderSignIn extends ProviderSubject {
  readonly issuedAt: number;
  /** Who is added if the subject is not known. */
  readonly newUser: { readonly id: string; readonly name: string; readonly email: string | null };
  /** The roles that the token gives, by the slugs of teams. */
  readonly roles: ReadonlyMap<string, Role>;
  /** All teams about which tokens decide. */
  readonly teamSlugs: readonly string[];
  readonly now: number;
}

/** Users who sign in at an identity provider. */
export class ProviderUserRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async find({ issuer, subject }: ProviderSubject): Promise<KnownSubject | undefined> {
    return await find(this.#db, { issuer, subject });
  }

  /**
   * Gives the user exactly the roles of a token in the teams about which tokens decide, unless a token that was issued later was seen. Removes
   * the last owner of a team, too: what the provider takes away must be gone. `no_team`: a new user would have no team, and is not added.
   * Each changed role has an event and a line in the audit log, because the request that brings the token may change nothing else.
   */
  async signIn(signIn: ProviderSignIn): Promise<"no_team" | { readonly userId: string; readonly changes: number }> {
    return await this.#db.transaction().execute(async (tx) => {
      // Teams first, then the row of the subject, then the user: the order of all transactions, so that they can't block each other.
      const teams = await this.#lockTeams(tx, signIn.teamSlugs);
      let known = await find(tx, signIn, this.#dialect);
      if (!known) {
        if (!teams.some(({ slug }) => signIn.roles.has(slug))) return "no_team";
        await this.#add(tx, signIn);
        known = await find(tx, signIn, this.#dialect);
      }
      if (!known) throw new Error("a subject that was just added is missing");
      const { userId } = known;
      if (known.seenIssuedAt >= signIn.issuedAt) return { userId, changes: 0 };
      await tx
        .updateTable("provider_users")
        .set({ seen_issued_at: signIn.issuedAt })
        .where("issuer", "=", signIn.issuer)
        .where("subject", "=", signIn.subject)
        .execute();
      const lines: NewAuditLine[] = [];
      for (const { id: teamId, slug } of teams) {
        const role = signIn.roles.get(slug);
        if (await this.#setRole(tx, { teamId, userId, role, now: signIn.now })) lines.push(lineOf({ teamId, userId, role }));
      }
      if (lines.length > 0) await appendAuditLines(tx, { dialect: this.#dialect, lines, now: signIn.now });
      return { userId, changes: lines.length };
    });
  }

  async #lockTeams(tx: Kysely<Database>, slugs: readonly string[]) {
    if (slugs.length === 0) return [];
    const named = tx.selectFrom("teams").where("slug", "in", slugs).where("deleted_at", "is", null);
    const teams = await named.select(["id", "slug"]).orderBy("id").execute();
    for (const { id } of teams) await lockTeam(tx, this.#dialect, id);
    return teams;
  }

  /** Adds the user, unless another process has just done it. */
  async #add(tx: Kysely<Database>, { issuer, subject, newUser, now }: ProviderSignIn): Promise<void> {
    await tx
      .insertInto("users")
      .values({ ...newUser, created_at: now })
      .execute();
    const { numInsertedOrUpdatedRows } = await tx
      .insertInto("provider_users")
      .values({ issuer, subject, user_id: newUser.id, seen_issued_at: 0 })
      .onConflict((conflict) => conflict.columns(["issuer", "subject"]).doNothing())
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows === 0n) await tx.deleteFrom("users").where("id", "=", newUser.id).execute();
  }

  async #setRole(
    tx: Kysely<Database>,
    { teamId, userId, role, now }: { teamId: string; userId: string; role: Role | undefined; now: number },
  ): Promise<boolean> {
    const row = tx.selectFrom("team_members").where("team_id", "=", teamId).where("user_id", "=", userId).select("role");
    const before = (await row.executeTakeFirst())?.role;
    if (before === role) return false;
    const cause = { actor: `user:${userId}`, reason: "identity_provider" };
    if (role !== undefined) return await putMember(tx, { teamId, userId, role, now, ...cause });
    await removeMember(tx, { teamId, userId, now, ...cause });
    await tx.deleteFrom("api_keys").where("team_id", "=", teamId).where("member_id", "=", userId).execute();
    return true;
  }
}

/** With a dialect, locks the row until the end of the transaction. */
async function find(db: Kysely<Database>, { issuer, subject }: ProviderSubject, lockFor?: DialectName): Promise<KnownSubject | undefined> {
  const query = db
    .selectFrom("provider_users")
    .where("issuer", "=", issuer)
    .where("subject", "=", subject)
    .select(["user_id", "seen_issued_at"]);
  const row = await (lockFor === "postgres" ? query.forNoKeyUpdate() : query).executeTakeFirst();
  return row && { userId: row.user_id, seenIssuedAt: row.seen_issued_at };
}

function lineOf({ teamId, userId, role }: { teamId: string; userId: string; role: Role | undefined }): NewAuditLine {
  return {
    requestId: currentRequest()?.requestId ?? null,
    operation: "signIn",
    teamId,
    actor: `user:${userId}`,
    userId,
    credentialId: null,
    credentialMask: null,
    address: null,
    subjectId: userId,
    outcome: "done",
    status: null,
    reason: role === undefined ? "no_role" : `role_${role}`,
    durationMs: null,
    madeIds: null,
    count: 1,
  };
}
