// Users, teams and keys for tests, made as the operator makes them.

import { randomBytes } from "node:crypto";
import type { Role } from "@skerry/store";
import { expect } from "vitest";
import type { Answer, ApiHarness } from "./api-harness.ts";

export interface TestUser {
  readonly id: string;
  readonly token: string;
}

/** The calls of one test, as the operator and as users. */
export class TeamCalls {
  readonly #api: () => ApiHarness;
  constructor(api: () => ApiHarness) {
    this.#api = api;
  }

  async admin(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = { "X-Admin-Token": this.#api().adminToken };
    return await this.#api().call(method, path, { key: null, headers, ...(body === undefined ? {} : { body }) });
  }

  async as(token: string, method: string, path: string, about: { body?: unknown; url?: string; team?: string } = {}): Promise<Answer> {
    const { body, url, team } = about;
    const headers = { Authorization: `Bearer ${token}`, ...(team === undefined ? {} : { "X-Team-ID": team }) };
    return await this.#api().call(method, path, {
      key: null,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(url === undefined ? {} : { url }),
    });
  }

  async team(slug = `team-${randomBytes(4).toString("hex")}`): Promise<string> {
    const made = await this.admin("POST", "/admin/teams", { name: slug, slug });
    expect(made.status, made.text).toBe(201);
    return made.body.teamID;
  }

  /** A new user with a token; with a team, a member of it. */
  async user(team?: string, role: Role = "developer"): Promise<TestUser> {
    const made = await this.admin("POST", "/admin/users", { name: "A user", email: "a@b" });
    expect(made.status, made.text).toBe(201);
    const id: string = made.body.userID;
    if (team !== undefined) expect((await this.admin("PUT", `/teams/${team}/members/${id}`, { role })).status).toBe(200);
    const token = await this.admin("POST", `/admin/users/${id}/access-tokens`, { name: "t" });
    expect(token.status, token.text).toBe(201);
    return { id, token: token.body.token };
  }

  /** The key that a command line gets when the user signs in. */
  async loginKey(user: TestUser, team: string): Promise<string> {
    const { body } = await this.as(user.token, "GET", "/teams");
    return body.find(({ teamID }: { teamID: string }) => teamID === team).apiKey;
  }

  /** A key of the harness's team, made by its owner. */
  async key(fields: object): Promise<string> {
    const made = await this.as(this.#api().accessToken, "POST", "/api-keys", { body: { name: "k", ...fields } });
    expect(made.status, made.text).toBe(201);
    return made.body.key;
  }
}
