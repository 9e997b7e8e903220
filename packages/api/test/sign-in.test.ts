// Users of an identity provider: a real one, which they sign in to as with a browser.

import { randomUUID } from "node:crypto";
import { waitUntil } from "@skerry/testkit/wait-until";
import { type JWTPayload, SignJWT } from "jose";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Api, OidcConfig } from "../src/index.ts";
import type { ApiHarness } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { documentOf, operationsOf, ownedBy, send, takes } from "./every-operation.ts";
import { AUDIENCE, newKey, TestProvider } from "./oidc-provider.ts";
import { TeamCalls } from "./team-calls.ts";

const HOUR_SECONDS = 3600;

interface MemberEvent {
  readonly type: string;
  readonly event_data: { readonly role?: string };
}

describeOnEachDatabase("users of an identity provider", { inSample: "both" }, (api) => {
  const calls = new TeamCalls(api);
  let provider: TestProvider;
  let config: OidcConfig;
  let signIn: Api;
  let url: string;

  beforeEach(async () => {
    provider = await TestProvider.start();
    config = {
      issuer: provider.issuer,
      audiences: [AUDIENCE],
      groupsClaim: "groups",
      grants: [
        { group: "staff", teamSlug: "default", role: "viewer" },
        { group: "leads", teamSlug: "default", role: "developer" },
        { group: "leads", teamSlug: "lab", role: "owner" },
        { group: "ghosts", teamSlug: "no-such-team", role: "owner" },
      ],
      clockSkewMs: 60_000,
      maxTokenAgeMs: 24 * 3_600_000,
    };
    signIn = await api().createApi({ ownerId: "oidc", oidc: config, timing: { providerRetryMs: 1 } });
    ({ url } = await signIn.listen());
  });
  afterEach(async () => {
    await signIn[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  });

  const account = async (token: string, at = url) => await calls.as(token, "GET", "/account", { url: at });
  const rolesOf = async (token: string) =>
    Object.fromEntries((await account(token)).body.teams.map(({ slug, role }: { slug: string; role: string }) => [slug, role]));
  const now = () => Math.floor(api().store.clock.now() / 1000);
  /** A token of the user that was issued this many seconds from now. */
  const issued = (sub: string, groups: readonly string[], seconds: number) => provider.sign({ sub, groups, iat: now() + seconds });

  it("are made with their first sign-in, with the roles of their groups, and act as members", async () => {
    const lab = await calls.team("lab");
    provider.users.set("ada", { name: "Ada", email: "ada@example.com", email_verified: true, groups: ["leads", "staff", "other"] });
    const token = await provider.signIn("ada");
    expect((await account(token)).body).toMatchObject({
      name: "Ada",
      email: "ada@example.com",
      teams: expect.arrayContaining([
        { teamID: api().teamId, slug: "default", name: expect.any(String), role: "developer", isDefault: expect.any(Boolean) },
        { teamID: lab, slug: "lab", name: "lab", role: "owner", isDefault: expect.any(Boolean) },
      ]),
    });
    // What takes an API key takes the token, for the team that the header names, or the first one.
    for (const team of [api().teamId, lab, lab.toUpperCase(), undefined]) {
      const about = { url, ...(team === undefined ? {} : { team }) };
      expect((await calls.as(token, "GET", "/v2/sandboxes", about)).status).toBe(200);
    }
    const created = await calls.as(token, "POST", "/v2/sandboxes", { url, team: api().teamId, body: { templateID: "base" } });
    expect(created.status, created.text).toBe(201);
    expect((await api().call("GET", `/sandboxes/${created.body.sandboxID}`)).status).toBe(200);
    expect((await calls.as(token, "GET", `/sandboxes/${created.body.sandboxID}`, { url, team: lab })).status).toBe(404);
    expect((await calls.as(token, "GET", "/templates", { url, team: api().teamId })).status).toBe(200);
    // Teams of others, and what is none.
    const { id } = (await api().store.identity.findTeamBySlug("other")) ?? { id: "" };
    expect((await calls.as(token, "GET", "/v2/sandboxes", { url, team: id })).body.code).toBe(403);
    expect((await calls.as(token, "GET", "/v2/sandboxes", { url, team: "nope" })).body).toEqual({ code: 400, message: "Invalid team ID" });
    // Keys that it makes: those of a command line end with the token.
    const key = await calls.as(token, "POST", "/api-keys", { url, team: lab, body: { name: "made" } });
    expect((await api().call("GET", "/v2/sandboxes", { key: key.body.key, url })).status).toBe(200);
    const login = (await calls.as(token, "GET", "/teams", { url })).body[0].apiKey;
    expect((await api().call("GET", "/v2/sandboxes", { key: login, url })).status).toBe(200);
    const later = { now: () => api().store.clock.now() + 2 * HOUR_SECONDS * 1000 };
    await using afterwards = await api().createApi({ ownerId: "later", oidc: config }, later);
    const then = (await afterwards.listen()).url;
    expect((await api().call("GET", "/v2/sandboxes", { key: login, url: then })).status).toBe(401);
    // An API without a provider takes none of its tokens.
    expect((await account(token, api().url)).status).toBe(401);
    expect((await calls.as(token, "GET", "/v2/sandboxes")).status).toBe(401);
  });

  it("get no user if no group has a team, and none by their address", async () => {
    const { body } = await calls.admin("POST", "/admin/users", { name: "Root", email: "root@example.com" });
    provider.users.set("mallory", { email: "root@example.com", email_verified: true, groups: ["strangers", "ghosts"] });
    const token = await provider.signIn("mallory");
    expect((await account(token)).body).toEqual({ code: 403, message: expect.stringMatching(/^You don't have access to any teams/) });
    const users = await calls.admin("GET", "/admin/users");
    expect(users.body.filter(({ email }: { email: string }) => email === "root@example.com")).toHaveLength(1);
    provider.users.set("mallory", { email: "root@example.com", email_verified: false, groups: ["staff"] });
    const member = await provider.signIn("mallory");
    expect((await account(member)).body).toMatchObject({ name: "mallory", email: null });
    expect((await account(member)).body.userID).not.toBe(body.userID);
    // The same subject of another issuer would be another user; the same user is made once by several first requests.
    const many = await Promise.all(
      Array.from({ length: 8 }, async () => account(await provider.sign({ sub: "first", groups: ["staff"] }))),
    );
    expect(new Set(many.map((answer) => answer.body.userID)).size).toBe(1);
    expect(many.map(({ status }) => status)).toEqual(many.map(() => 200));
  });

  it("have the roles of their newest token, in every process, and none of an older one", async () => {
    const lab = await calls.team("lab");
    const extra = await calls.team("extra");
    const old = await issued("bob", ["leads"], -30);
    expect(await rolesOf(old)).toEqual({ default: "developer", lab: "owner" });
    const { userID } = (await account(old)).body;
    // A membership that is not of the provider's teams stays, whatever the groups are.
    await calls.admin("PUT", `/teams/${extra}/members/${userID}`, { role: "admin" });
    await calls.admin("PUT", `/teams/${api().teamId}/members/${userID}`, { role: "admin" });
    const cli = await calls.loginKey({ id: userID, token: (await tokenOf(userID)).token }, lab);
    expect((await api().call("GET", "/v2/sandboxes", { key: cli })).status).toBe(200);

    // The user, who is the only owner, is removed from the team while connected.
    const less = await issued("bob", ["staff"], -20);
    const uses = Array.from({ length: 4 }, () => calls.as(old, "GET", "/v2/sandboxes", { url, team: lab }));
    expect(await rolesOf(less)).toEqual({ default: "viewer", extra: "admin" });
    for (const { status } of await Promise.all(uses)) expect([200, 403]).toContain(status);
    expect((await calls.as(old, "GET", "/v2/sandboxes", { url, team: lab })).status).toBe(403);
    expect((await api().call("GET", "/v2/sandboxes", { key: cli })).status).toBe(401);
    expect(await rolesOf(old)).toEqual({ default: "viewer", extra: "admin" });
    // Without the claim the user has no groups.
    const none = await provider.sign({ sub: "bob", groups: undefined, iat: now() - 10 });
    expect(await rolesOf(none)).toEqual({ extra: "admin" });
    expect(await rolesOf(less)).toEqual({ extra: "admin" });
    expect(await rolesOf(await issued("bob", ["leads"], 0))).toEqual({ default: "developer", lab: "owner", extra: "admin" });
    // Each changed role has its line and its event, although no request asked for the change.
    const lines = (await calls.admin("GET", `/admin/audit?operation=signIn&subjectID=${userID}&order=asc`)).body;
    expect(lines.map((line: { team_id: string; reason: string }) => [line.team_id, line.reason]).toSorted()).toEqual(
      [
        [api().teamId, "role_developer"],
        [lab, "role_owner"],
        [api().teamId, "role_viewer"],
        [lab, "no_role"],
        [api().teamId, "no_role"],
        [api().teamId, "role_developer"],
        [lab, "role_owner"],
      ].toSorted(),
    );
    expect(lines[0]).toMatchObject({ actor: { type: "user", id: userID }, outcome: "done", subject_id: userID });
    const told = async () => (await calls.as(old, "GET", `/events?subjectID=${userID}&order=asc`, { url, team: api().teamId })).body;
    await waitUntil("all events have numbers", async () => (await told()).length === 5);
    expect((await told()).map(({ type, event_data }: MemberEvent) => [type.split(".").at(-1), event_data.role])).toEqual([
      ["created", "developer"],
      ["updated", "admin"],
      ["updated", "viewer"],
      ["deleted", undefined],
      ["created", "developer"],
    ]);

    // Deleted here, but not at the provider: a good token makes a new user. Deletions and sign-ins at the same time don't block each other.
    await calls.admin("PUT", `/teams/${lab}/members/${userID}`, { role: "viewer" });
    const last = await issued("bob", ["staff"], 1);
    await Promise.all([calls.admin("DELETE", `/admin/users/${userID}`), account(last), account(last)]);
    const again = await account(last);
    expect(again.status, again.text).toBe(200);
    expect((await calls.admin("GET", `/admin/users/${userID}`)).status).toBe(again.body.userID === userID ? 200 : 404);
  });

  async function tokenOf(userId: string): Promise<{ token: string }> {
    return (await calls.admin("POST", `/admin/users/${userId}/access-tokens`, { name: "t" })).body;
  }

  it("are refused with tokens that are forged, foreign, expired, of the future or for something else", async () => {
    const stranger = await newKey("key-1");
    const hour = now() + HOUR_SECONDS;
    const publicKey = new TextEncoder().encode(JSON.stringify(provider.key.jwk.n));
    const claims: JWTPayload = { iss: provider.issuer, aud: AUDIENCE, sub: "eve", iat: now(), exp: hour, groups: ["leads"] };
    const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
    const good = await provider.sign(claims);
    const [head = "", body = "", signature = ""] = good.split(".");
    const refused: [what: string, token: string, reason: string][] = [
      ["none", `${encoded({ alg: "none" })}.${encoded(claims)}.`, "not signed"],
      [
        "HMAC with the public key",
        await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "key-1" }).sign(publicKey),
        "not signed",
      ],
      ["a foreign key of the same name", await provider.sign(claims, {}, stranger), "not signed"],
      ["a key that the token brings along", await provider.sign(claims, { jwk: stranger.jwk, kid: "x" }, stranger), "no such key"],
      ["an unknown key", await provider.sign(claims, { kid: "invented" }), "no such key"],
      ["a changed body", `${head}.${encoded({ ...claims, sub: "root" })}.${signature}`, "not signed"],
      ["no signature", `${head}.${body}.`, "not signed"],
      ["no JSON", "a.b.c", "not signed"],
      ["another issuer", await provider.sign({ ...claims, iss: "https://evil.example" }), '"iss"'],
      ["another audience", await provider.sign({ ...claims, aud: "other-app" }), '"aud"'],
      ["no audience", await provider.sign({ ...claims, aud: undefined as never }), '"aud"'],
      ["expired", await provider.sign({ ...claims, exp: now() - 61 }), "has expired"],
      ["no expiry", await provider.sign({ ...claims, exp: undefined as never }), '"exp"'],
      ["too old", await provider.sign({ ...claims, iat: now() - 25 * HOUR_SECONDS }), "has expired"],
      ["of the future", await provider.sign({ ...claims, iat: now() + 120 }), "compare the clocks"],
      ["not valid yet", await provider.sign({ ...claims, nbf: now() + 120 }), "compare the clocks"],
      ["no time of issue", await provider.sign({ ...claims, iat: undefined as never }), '"iat"'],
      ["no subject", await provider.sign({ ...claims, sub: undefined as never }), '"sub"'],
      ["an empty subject", await provider.sign({ ...claims, sub: "" }), "subject"],
      ["a subject with NUL", await provider.sign({ ...claims, sub: "a\0" }), "subject"],
      ["a logout", await provider.sign(claims, { typ: "logout+jwt" }), "another purpose"],
      ["bound to a key", await provider.sign({ ...claims, cnf: { jkt: "x" } }), "bound to a key"],
    ];
    for (const [what, token, reason] of refused) {
      for (const path of ["/account", "/v2/sandboxes"]) {
        const answer = await calls.as(token, "GET", path, { url });
        expect({ what, ...answer.body }).toEqual({ what, code: 401, message: expect.stringContaining(reason) });
        expect(answer.body.message).toMatch(/^Invalid auth provider token\./);
      }
    }
    expect((await calls.admin("GET", "/admin/users")).body).toHaveLength(1);
    // The clocks may differ a little.
    expect((await account(await provider.sign({ ...claims, exp: now() - 20, iat: now() - 600 }))).status).toBe(200);
    expect((await account(await provider.sign({ ...claims, iat: now() + 30 }))).status).toBe(200);
    // The clock of the platform jumps ahead, and back.
    let jump = HOUR_SECONDS * 2_000;
    await using jumping = await api().createApi({ ownerId: "jumps", oidc: config }, { now: () => api().store.clock.now() + jump });
    const there = (await jumping.listen()).url;
    expect((await account(good, there)).body.message).toContain("has expired");
    jump = -HOUR_SECONDS * 1_000;
    expect((await account(good, there)).body.message).toContain("compare the clocks");
    jump = 0;
    expect((await account(good, there)).status).toBe(200);
  });

  it("go on while the provider is down or slow, and follow when it rotates its keys", async () => {
    await provider.stop();
    const early = await issued("carol", ["staff"], 0);
    const down = await account(early);
    expect(down.body).toEqual({ code: 503, message: expect.stringContaining("identity provider") });
    expect(down.headers["should-retry"]).toBe("true");
    await provider.resume();
    await expect.poll(async () => (await account(early)).status).toBe(200);
    // Down: known keys are enough, and nothing else needs the provider.
    await provider.stop();
    expect((await account(early)).status).toBe(200);
    expect((await api().call("GET", "/v2/sandboxes", { url })).status).toBe(200);
    await provider.resume();
    // New keys in the middle: tokens of both are used while the provider has the new one alone.
    await provider.rotate("key-2");
    const renewed = await issued("carol", ["leads"], 1);
    const slow = Promise.withResolvers<void>();
    provider.hung = slow;
    const waiting = account(renewed);
    expect((await account(early)).status).toBe(200);
    slow.resolve();
    provider.hung = undefined;
    expect((await waiting).body).toMatchObject({ teams: [{ slug: "default", role: "developer" }] });
    // The former key is withdrawn.
    expect((await account(early)).body.message).toContain("no such key");
  });

  it("may do in every operation what their role allows, and nothing of the operator", async () => {
    const document = await documentOf(api());
    const owned = await ownedBy(api());
    const token = await issued("viewer", ["staff"], 0);
    await account(token);
    const headers = { Authorization: `Bearer ${token}`, "X-Team-ID": api().teamId };
    const through: Pick<ApiHarness, "call"> = { call: (method, path, about) => api().call(method, path, { ...about, url }) };
    const viewer = /^(sandboxes|templates|volumes|secrets|events|team):read$|^account:/;
    for (const operation of operationsOf(document)) {
      const { operationId, "x-scope": scope } = operation;
      const isTaken = takes(operation, "apiKey") || takes(operation, "accessToken");
      if (scope === "anyone" || (isTaken && viewer.test(scope))) continue;
      const answer = await send(through, operation, { owned, document, headers });
      expect({ operationId, status: answer.status }).toEqual({ operationId, status: isTaken ? 403 : 401 });
    }
    expect((await calls.as(token, "GET", `/sandboxes/${owned.sandboxID}`, { url, team: api().teamId })).body).not.toHaveProperty(
      "envdAccessToken",
    );
    expect((await calls.as(token, "GET", `/teams/${randomUUID()}/members`, { url })).status).toBe(403);
  });
});
