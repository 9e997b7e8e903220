// The members of teams, and invitations to become one.

import { hash, randomBytes, randomUUID } from "node:crypto";
import { type Clock, Secret } from "@skerry/base";
import type { Invitation, InvitationRepository, Member, MemberId, MemberRepository, Role, Team } from "@skerry/store";
import { publicError } from "../errors.ts";
import { ROLE_RIGHTS } from "../keys/scopes.ts";

/** Stated in docs/teams.md. */
const MAX_INVITATIONS = 100;

const TOKEN_PREFIX = "inv_";
const TOKEN_BYTES = 32;

/** A team, and the role in it of whoever asks. */
export interface ActingMember {
  readonly team: Team;
  readonly role: Role;
}

export interface NewInvitation {
  readonly email: string | null;
  readonly role: Role;
  readonly lifeMs: number;
  readonly createdBy: string | null;
}

export interface MemberServiceDeps {
  readonly members: MemberRepository;
  readonly invitations: InvitationRepository;
  readonly clock: Clock;
}

/** Callers have checked that the role allows changes of members at all. */
export class MemberService {
  readonly #deps: MemberServiceDeps;
  constructor(deps: MemberServiceDeps) {
    this.#deps = deps;
  }

  async list(teamId: string): Promise<readonly Member[]> {
    return await this.#deps.members.list(teamId);
  }

  /** Gives a member another role. `mayAdd`: a user who is no member becomes one. */
  async put(by: ActingMember, change: { readonly userId: string; readonly role: Role; readonly mayAdd: boolean }): Promise<Member> {
    const { members, clock } = this.#deps;
    const id = { teamId: by.team.id, userId: change.userId };
    const done = await members.put({ ...id, ...ROLE_RIGHTS[by.role], role: change.role, mayAdd: change.mayAdd, now: clock.now() });
    if (done !== "put") throw refusal(done, change.mayAdd ? "User not found" : "Member not found: invite the user instead");
    const member = await members.find(id);
    if (!member) throw publicError("not_found", "Member not found");
    return member;
  }

  /** From now on, every process refuses the user's credentials for this team. */
  async remove(by: ActingMember, change: { readonly userId: string; readonly withKeys: boolean }): Promise<void> {
    const { members, clock } = this.#deps;
    const done = await members.remove({ teamId: by.team.id, ...change, ...ROLE_RIGHTS[by.role], now: clock.now() });
    if (done !== "removed") throw refusal(done, "Member not found");
  }

  /** A member may always leave, except the last owner. */
  async leave({ teamId, userId }: MemberId): Promise<void> {
    const { members, clock } = this.#deps;
    const done = await members.remove({ teamId, userId, withKeys: false, managesOwners: true, now: clock.now() });
    if (done !== "removed") throw refusal(done, "Member not found");
  }

  async invite(
    by: ActingMember,
    { lifeMs, ...about }: NewInvitation,
  ): Promise<{ readonly invitation: Invitation; readonly token: Secret }> {
    if (about.role === "owner" && !ROLE_RIGHTS[by.role].managesOwners) throw refusal("owners_only", "");
    const { invitations, clock } = this.#deps;
    const token = new Secret(TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString("hex"));
    const now = clock.now();
    const invitation = { id: randomUUID(), teamId: by.team.id, ...about, createdAt: now, expiresAt: now + lifeMs };
    if (await invitations.add({ ...invitation, tokenHash: hashOf(token.reveal()) }, MAX_INVITATIONS)) return { invitation, token };
    throw publicError("limit_reached", `The team has ${MAX_INVITATIONS} open invitations, and may have no more. Delete one first`);
  }

  async listInvitations(teamId: string): Promise<readonly Invitation[]> {
    return await this.#deps.invitations.list(teamId, this.#deps.clock.now());
  }

  async removeInvitation(by: ActingMember, id: string): Promise<void> {
    const invitation = await this.#deps.invitations.find(by.team.id, id);
    if (invitation?.role === "owner" && !ROLE_RIGHTS[by.role].managesOwners) throw refusal("owners_only", "");
    if (!(await this.#deps.invitations.remove(by.team.id, id))) throw publicError("not_found", "Invitation not found");
  }

  /** Makes the user a member. An invitation works once. */
  async accept(userId: string, token: string): Promise<ActingMember> {
    const accepted = await this.#deps.invitations.accept(hashOf(token), { userId, now: this.#deps.clock.now() });
    switch (accepted.kind) {
      case "accepted":
        return accepted;
      case "member_already":
        throw publicError("conflict", `You are a member of the team ${accepted.team.name} already`);
      case "missing":
        throw publicError("not_found", "There is no such invitation: it was used, deleted, or has expired");
    }
  }
}

function refusal(kind: "missing" | "last_owner" | "owners_only", missing: string): Error {
  switch (kind) {
    case "missing":
      return publicError("not_found", missing);
    case "last_owner":
      return publicError("conflict", "The user is the last owner of the team: make another member an owner first");
    case "owners_only":
      return publicError("forbidden", "Only owners may make, change and remove owners");
  }
}

function hashOf(token: string): string {
  return hash("sha256", token, "hex");
}
