// Teams and users as the operator manages them.

import { randomUUID } from "node:crypto";
import type { Clock } from "@skerry/base";
import type { ListedTeam, NewestFirstPage, TeamRepository, User, UserRepository } from "@skerry/store";
import { publicError } from "../errors.ts";
import { type Page, pageOf } from "../page.ts";

/** The team of the first start. Every start adds it again. */
const KEPT_SLUG = "default";

export interface AccountServiceDeps {
  readonly teams: TeamRepository;
  readonly users: UserRepository;
  readonly clock: Clock;
}

export class AccountService {
  readonly #deps: AccountServiceDeps;
  constructor(deps: AccountServiceDeps) {
    this.#deps = deps;
  }

  /** The slug is the namespace of the names of the team's templates. */
  async createTeam({ name, slug }: { readonly name: string; readonly slug: string }): Promise<ListedTeam> {
    const team = { id: randomUUID(), slug, name, createdAt: this.#deps.clock.now() };
    if (await this.#deps.teams.add(team)) return team;
    throw publicError("conflict", `There is a team with the slug ${slug} already`);
  }

  async getTeam(id: string): Promise<ListedTeam> {
    const team = await this.#deps.teams.find(id);
    if (!team) throw publicError("not_found", "Team not found");
    return team;
  }

  async listTeams({ limit, after }: NewestFirstPage): Promise<Page<ListedTeam>> {
    return pageOf(await this.#deps.teams.list({ limit: limit + 1, ...(after ? { after } : {}) }), limit);
  }

  async renameTeam(id: string, name: string): Promise<ListedTeam> {
    if (!(await this.#deps.teams.rename(id, name))) throw publicError("not_found", "Team not found");
    return await this.getTeam(id);
  }

  /** Refused while the team has sandboxes, templates or volumes. From then on, no process accepts a key of the team. */
  async deleteTeam(id: string): Promise<void> {
    const { slug } = await this.getTeam(id);
    if (slug === KEPT_SLUG) throw publicError("conflict", "The team of the first start can't be deleted");
    const done = await this.#deps.teams.remove(id, this.#deps.clock.now());
    if (done === "removed") return;
    if (done === "missing") throw publicError("not_found", "Team not found");
    const left = `${done.sandboxes} sandboxes, ${done.templates} templates or snapshots, and ${done.volumes} volumes`;
    throw publicError("conflict", `The team still has ${left}. Delete them first`);
  }

  async createUser({ name, email }: { readonly name: string; readonly email: string | null }): Promise<User> {
    const user = { id: randomUUID(), name, email, createdAt: this.#deps.clock.now() };
    await this.#deps.users.add(user);
    return user;
  }

  async getUser(id: string): Promise<User> {
    const user = await this.#deps.users.find(id);
    if (!user) throw publicError("not_found", "User not found");
    return user;
  }

  async listUsers({ limit, after }: NewestFirstPage): Promise<Page<User>> {
    return pageOf(await this.#deps.users.list({ limit: limit + 1, ...(after ? { after } : {}) }), limit);
  }

  async renameUser(id: string, name: string): Promise<User> {
    if (!(await this.#deps.users.rename(id, name))) throw publicError("not_found", "User not found");
    return await this.getUser(id);
  }

  /** Deletes a user with all memberships and tokens. Refused for the last owner of a team. */
  async deleteUser(id: string): Promise<void> {
    const done = await this.#deps.users.remove(id, this.#deps.clock.now());
    if (done === "removed") return;
    if (done === "missing") throw publicError("not_found", "User not found");
    if (done === "seeded") throw publicError("conflict", "The user of the first start can't be deleted");
    throw publicError(
      "conflict",
      `The user is the last owner of the team ${done.lastOwnerOf}: make another member an owner, or delete the team first`,
    );
  }
}
