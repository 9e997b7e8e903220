// Teams, users, members and roles, on both databases and with two API processes.

import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";
import { TeamCalls } from "./team-calls.ts";

const LAST_OWNER = { code: 409, message: "The user is the last owner of the team: make another member an owner first" };
const OWNERS_ONLY = { code: 403, message: "Only owners may make, change and remove owners" };

describeOnEachDatabase("teams", { inSample: "both" }, (api) => {
  const calls = new TeamCalls(api);
  const listWith = async (key: string, url = api().url) => (await api().call("GET", "/v2/sandboxes", { key, url })).status;

  it("have members with roles, and owners whom only owners change", async () => {
    const team = await calls.team();
    const owner = await calls.user(team, "owner");
    const admin = await calls.user(team, "admin");
    const member = await calls.user(team, "viewer");
    const path = (user: { id: string }) => `/teams/${team}/members/${user.id}`;
    expect((await calls.as(admin.token, "PUT", path(member), { body: { role: "developer" } })).body).toMatchObject({
      userID: member.id,
      name: "A user",
      email: "a@b",
      role: "developer",
    });
    for (const [method, who, body] of [
      ["PUT", member, { role: "owner" }],
      ["PUT", owner, { role: "viewer" }],
      ["DELETE", owner, undefined],
    ] as const) {
      expect((await calls.as(admin.token, method, path(who), { body })).body).toEqual(OWNERS_ONLY);
    }
    expect((await calls.as(admin.token, "POST", `/teams/${team}/invitations`, { body: { role: "owner" } })).body).toEqual(OWNERS_ONLY);
    for (const [method, body] of [["PUT", { role: "viewer" }], ["DELETE"]] as const) {
      expect((await calls.as(member.token, method, path(admin), { body })).body).toMatchObject({ code: 403, error_code: "missing_scope" });
      expect((await calls.as(owner.token, method, `/teams/${team}/members/${randomUUID()}`, { body })).status).toBe(404);
    }
    const stranger = await calls.user();
    expect((await calls.as(owner.token, "PUT", path(stranger), { body: { role: "viewer" } })).body.message).toMatch(/invite the user/);
    expect((await calls.as(stranger.token, "GET", `/teams/${team}/members`)).body).toEqual({
      code: 403,
      message: "You are not allowed to access this team",
    });
    expect((await calls.as(stranger.token, "GET", "/api-keys")).body).toEqual({ code: 403, message: "You don't have access to any teams" });
    const members = await calls.as(member.token, "GET", `/teams/${team}/members`);
    expect(members.body.map(({ role }: { role: string }) => role).sort()).toEqual(["admin", "developer", "owner"]);
    expect((await calls.as(owner.token, "PUT", path(admin), { body: { role: "owner" } })).status).toBe(200);
    expect((await calls.as(member.token, "GET", "/account")).body).toMatchObject({
      userID: member.id,
      teams: [{ teamID: team, role: "developer", isDefault: true }],
    });
  });

  it("keep their last owner, also when two leave at the same time", async () => {
    const team = await calls.team();
    const [first, second] = [await calls.user(team, "owner"), await calls.user(team, "owner")];
    await using other = await api().createSecond();
    const { url } = await other.listen();
    const left = await Promise.all([
      calls.as(first.token, "POST", `/teams/${team}/leave`),
      calls.as(second.token, "POST", `/teams/${team}/leave`, { url }),
    ]);
    expect(left.map(({ status }) => status).sort()).toEqual([204, 409]);
    const last = left[0]?.status === 409 ? first : second;
    expect((await calls.as(last.token, "POST", `/teams/${team}/leave`)).body).toEqual(LAST_OWNER);
    expect((await calls.as(last.token, "PUT", `/teams/${team}/members/${last.id}`, { body: { role: "admin" } })).body).toEqual(LAST_OWNER);
    expect((await calls.admin("DELETE", `/teams/${team}/members/${last.id}`)).body).toEqual(LAST_OWNER);
    expect((await calls.admin("DELETE", `/admin/users/${last.id}`)).body).toMatchObject({ code: 409 });
    const gone = last === first ? second : first;
    expect((await calls.admin("DELETE", `/admin/users/${gone.id}`)).status).toBe(204);
    expect((await calls.as(gone.token, "GET", "/account")).status).toBe(401);
  });

  it("are closed at once to a removed member, in every process, while requests of the member run", async () => {
    const team = await calls.team();
    await calls.user(team, "owner");
    const member = await calls.user(team);
    const login = await calls.loginKey(member, team);
    const made = await calls.as(member.token, "POST", "/api-keys", { body: { name: "ci" }, team });
    await using other = await api().createSecond();
    const { url } = await other.listen();
    expect([await listWith(login), await listWith(made.body.key, url)]).toEqual([200, 200]);
    const during = Array.from({ length: 4 }, () => listWith(login, url));
    expect((await calls.admin("DELETE", `/teams/${team}/members/${member.id}`)).status).toBe(204);
    expect([await listWith(login), await listWith(login, url)]).toEqual([401, 401]);
    for (const status of await Promise.all(during)) expect([200, 401]).toContain(status);
    expect((await calls.as(member.token, "GET", "/api-keys", { team, url })).status).toBe(403);
    // What the member made for the team is the team's.
    expect(await listWith(made.body.key)).toBe(200);
    expect((await calls.admin("PUT", `/teams/${team}/members/${member.id}`, { role: "viewer" })).status).toBe(200);
    // A key of a former membership does not come back with the next one.
    expect(await listWith(login)).toBe(401);
    expect((await calls.admin("DELETE", `/teams/${team}/members/${member.id}?deleteKeys=true`)).status).toBe(204);
    expect(await listWith(made.body.key, url)).toBe(401);
  });

  it("let the key of a sign-in do what the member's role allows now", async () => {
    const team = await calls.team();
    await calls.user(team, "owner");
    const member = await calls.user(team, "viewer");
    const key = await calls.loginKey(member, team);
    const create = () => api().call("POST", "/v2/sandboxes", { key, body: { templateID: "base" } });
    expect((await create()).body).toMatchObject({ code: 403, error_code: "missing_scope", message: expect.stringMatching(/viewer/) });
    expect(await listWith(key)).toBe(200);
    await calls.admin("PUT", `/teams/${team}/members/${member.id}`, { role: "developer" });
    const created = await create();
    expect(created.status, created.text).toBe(201);
    const detail = () => api().call("GET", `/sandboxes/${created.body.sandboxID}`, { key });
    expect((await detail()).body).toHaveProperty("envdAccessToken");
    await calls.admin("PUT", `/teams/${team}/members/${member.id}`, { role: "viewer" });
    // Whoever may only read must not get what changes the sandbox.
    expect((await detail()).body).not.toHaveProperty("envdAccessToken");
    expect((await api().call("DELETE", `/sandboxes/${created.body.sandboxID}`, { key })).status).toBe(403);
  });

  it("let developers change their own keys alone", async () => {
    const team = await calls.team();
    const owner = await calls.user(team, "owner");
    const developer = await calls.user(team);
    const of = async (user: { token: string }) => (await calls.as(user.token, "POST", "/api-keys", { body: { name: "k" } })).body.id;
    const [theirs, own] = [await of(owner), await of(developer)];
    for (const [method, body] of [["PATCH", { name: "x" }], ["DELETE"]] as const) {
      expect((await calls.as(developer.token, method, `/api-keys/${theirs}`, { body })).status).toBe(403);
      expect((await calls.as(developer.token, method, `/api-keys/${randomUUID()}`, { body })).text).toBe("id not found");
    }
    expect((await calls.as(developer.token, "DELETE", `/api-keys/${own}`)).status).toBe(204);
    expect((await calls.as(owner.token, "DELETE", `/api-keys/${theirs}`)).status).toBe(204);
  });

  it("and users are listed in pages that stay right while the lists change", async () => {
    const path = (what: string, token: string) => `/admin/${what}?limit=2${token && `&nextToken=${encodeURIComponent(token)}`}`;
    for (const [what, make] of [
      ["teams", () => calls.team()],
      ["users", async () => (await calls.user()).id],
    ] as const) {
      const id = what === "teams" ? "teamID" : "userID";
      const ids: string[] = [];
      for (let count = 0; count < 5; count += 1) ids.push(await make());
      const seen: string[] = [];
      let token = "";
      do {
        const page = await calls.admin("GET", path(what, token));
        expect(page.status, page.text).toBe(200);
        seen.push(...page.body.map((entry: Record<string, string>) => entry[id]));
        token = String(page.headers["x-next-token"] ?? "");
        // A new one, and one less of those that come later.
        if (seen.length === 2) {
          await make();
          expect((await calls.admin("DELETE", `/admin/${what}/${ids[0]}`)).status).toBe(204);
        }
      } while (token);
      expect(new Set(seen).size).toBe(seen.length);
      expect(ids.slice(1).filter((known) => !seen.includes(known))).toEqual([]);
      expect((await calls.admin("GET", path(what, "nonsense"))).body).toEqual({ code: 400, message: "Invalid next token" });
    }
  });

  it("and users have names up to a limit", async () => {
    const [team, user] = [await calls.team(), await calls.user()];
    const long = "\u{1f511}".repeat(128);
    for (const [path, id] of [["/teams", team] as const, ["/admin/users", user.id] as const]) {
      expect((await calls.admin("PATCH", `${path}/${id}`, { name: long })).body).toMatchObject({ name: long });
      for (const name of ["", "x".repeat(257), "a\0", "\ud800", 1]) {
        expect((await calls.admin("PATCH", `${path}/${id}`, { name })).body.message, String(name)).toMatch(/^validation error/);
      }
      expect((await calls.admin("PATCH", `${path}/${randomUUID()}`, { name: "x" })).status).toBe(404);
    }
    const slug = "a".repeat(63);
    expect((await calls.admin("POST", "/admin/teams", { name: "x", slug })).status).toBe(201);
    expect((await calls.admin("POST", "/admin/teams", { name: "x", slug })).status).toBe(409);
    for (const wrong of ["", "-a", "a-", "A", "a b", "ä", "a/b", "a".repeat(64)]) {
      expect((await calls.admin("POST", "/admin/teams", { name: "x", slug: wrong })).status, wrong).toBe(400);
    }
    for (const email of ["", "x", "a b@c", "a@\0", `${"x".repeat(400)}@y`]) {
      expect((await calls.admin("POST", "/admin/users", { name: "x", email })).status, email).toBe(400);
    }
  });

  it("are deleted when they are empty, with their keys", async () => {
    const slug = `gone-${randomUUID().slice(0, 8)}`;
    const team = await calls.team(slug);
    const member = await calls.user(team, "owner");
    const { key } = (await calls.admin("POST", `/admin/teams/${team}/api-keys`, { name: "k" })).body;
    const sandbox = await api().create({}, { key });
    expect((await calls.admin("DELETE", `/admin/teams/${team}`)).body).toEqual({
      code: 409,
      message: "The team still has 1 sandboxes, 0 templates or snapshots, and 0 volumes. Delete them first",
    });
    expect((await api().call("DELETE", `/sandboxes/${sandbox}`, { key })).status).toBe(204);
    const invitation = (await calls.admin("POST", `/teams/${team}/invitations`, { role: "viewer" })).body;
    // A create that was admitted before the deletion either comes before it, or adds nothing any more.
    const [created, deleted] = await Promise.all([
      api().call("POST", "/v2/sandboxes", { key, body: { templateID: "base" } }),
      calls.admin("DELETE", `/admin/teams/${team}`),
    ]);
    expect([`201 409`, `401 204`]).toContain(`${created.status} ${deleted.status}`);
    if (created.status === 201) {
      expect((await api().call("DELETE", `/sandboxes/${created.body.sandboxID}`, { key })).status).toBe(204);
      expect((await calls.admin("DELETE", `/admin/teams/${team}`)).status).toBe(204);
    }
    expect(await listWith(key)).toBe(401);
    expect((await calls.as(member.token, "GET", "/account")).body.teams).toEqual([]);
    expect((await calls.as(member.token, "POST", "/invitations/accept", { body: { token: invitation.token } })).status).toBe(404);
    for (const [method, path, body] of [
      ["GET", `/admin/teams/${team}`],
      ["DELETE", `/admin/teams/${team}`],
      ["PUT", `/teams/${team}/members/${member.id}`, { role: "viewer" }],
      ["POST", `/admin/teams/${team}/api-keys`, { name: "k" }],
    ] as const) {
      expect((await calls.admin(method, path, body)).body).toEqual({ code: 404, message: "Team not found" });
    }
    expect((await calls.admin("DELETE", `/admin/teams/${api().teamId}`)).status).toBe(409);
    await calls.team(slug);
  });
});
