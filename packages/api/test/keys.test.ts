import { randomUUID } from "node:crypto";
import { Secret, systemClock } from "@skerry/base";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { ApiKeySchema, CreatedAccessTokenSchema, CreatedApiKeySchema } from "../src/http/routes/keys/key-bodies.ts";
import { seedIdentity } from "../src/index.ts";
import type { Answer } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const HOUR_MS = 3_600_000;
const NOT_FOUND = { status: 404, text: "id not found" };

describeOnEachDatabase("keys", { inSample: "both" }, (api) => {
  const bearer = (token = api().accessToken) => ({ Authorization: `Bearer ${token}` });
  const admin = (teamId = api().teamId) => ({ "X-Admin-Token": api().adminToken, "X-Team-ID": teamId });
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = bearer(), url = api().url) =>
    api().call(method, path, { key: null, headers, url, ...(body === undefined ? {} : { body }) });
  const make = async (body: object = { name: "k" }): Promise<Answer["body"]> => {
    const answer = await call("POST", "/api-keys", body);
    expect(answer.status, answer.text).toBe(201);
    return answer.body;
  };
  const statusWith = async (key: string, url = api().url) => (await api().call("GET", "/v2/sandboxes", { key, url })).status;
  const otherTeam = async () => {
    const team = await api().store.identity.findTeamBySlug("other");
    return team?.id ?? "";
  };

  it("are shown once, and masked from then on", async () => {
    const made = await make({ name: "ci \u{1f511}", unknown: 1 });
    expect(Value.Errors(CreatedApiKeySchema, made)).toEqual([]);
    expect(made.key).toMatch(/^e2b_[0-9a-f]{40}$/);
    const hex = made.key.slice(4);
    expect(made.mask).toEqual({ prefix: "e2b_", valueLength: 40, maskedValuePrefix: hex.slice(0, 2), maskedValueSuffix: hex.slice(-4) });
    expect(made).not.toHaveProperty("lastUsed");
    const { body, text } = await call("GET", "/api-keys");
    for (const key of body) expect(Value.Errors(ApiKeySchema, key)).toEqual([]);
    const { key: _key, ...shown } = made;
    expect(body).toHaveLength(2);
    expect(body[1]).toEqual({ ...shown, createdBy: { id: expect.any(String), email: null } });
    expect(body[0]).not.toHaveProperty("createdBy");
    expect(text).not.toContain(hex.slice(2, 36));
    expect(body).toEqual((await call("GET", "/api-keys", undefined, admin())).body);
  });

  it("tell when they were used last, to the minute", async () => {
    const made = await make();
    expect(await statusWith(made.key)).toBe(200);
    const used = async () => (await call("GET", "/api-keys")).body.find(({ id }: { id: string }) => id === made.id).lastUsed;
    const first = await used();
    expect(Date.parse(first)).toBeGreaterThanOrEqual(Date.parse(made.createdAt));
    // All of the next minute counts as the same use, so it writes nothing.
    expect(await Promise.all(Array.from({ length: 5 }, () => statusWith(made.key)))).toEqual([200, 200, 200, 200, 200]);
    expect(await used()).toBe(first);
    const later = { now: () => api().store.clock.now() + HOUR_MS };
    await using tomorrow = await api().createApi({ ownerId: "later" }, later);
    expect(await statusWith(made.key, (await tomorrow.listen()).url)).toBe(200);
    expect(Date.parse(await used()) - Date.parse(first)).toBeGreaterThanOrEqual(HOUR_MS);
  });

  it("are renamed and deleted, which every process follows at once", async () => {
    const made = await make();
    await using second = await api().createSecond();
    const { url } = await second.listen();
    expect([await statusWith(made.key), await statusWith(made.key, url)]).toEqual([200, 200]);
    expect(await call("PATCH", `/api-keys/${made.id}`, { name: "renamed" })).toMatchObject({ status: 202, text: "" });
    expect((await call("GET", "/api-keys")).body[1]).toMatchObject({ id: made.id, name: "renamed" });
    expect(await call("DELETE", `/api-keys/${made.id.toUpperCase()}`, undefined, bearer(), url)).toMatchObject({ status: 204, text: "" });
    expect([await statusWith(made.key), await statusWith(made.key, url)]).toEqual([401, 401]);
    expect((await call("GET", "/api-keys")).body).toHaveLength(1);
    for (const [method, body] of [["PATCH", { name: "x" }], ["DELETE"]] as const) {
      const answer = await call(method, `/api-keys/${made.id}`, body);
      expect(answer).toMatchObject(NOT_FOUND);
      expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
    }
  });

  it("never work again after their deletion in any process, whatever runs at the same time", async () => {
    await using second = await api().createSecond();
    const { url } = await second.listen();
    const keys = await Promise.all(Array.from({ length: 6 }, () => make()));
    await Promise.all(
      keys.map(async (made) => {
        const uses = [url, undefined, url, undefined].map((at) => statusWith(made.key, at));
        expect((await call("DELETE", `/api-keys/${made.id}`)).status).toBe(204);
        expect(await Promise.all([statusWith(made.key, url), statusWith(made.key)])).toEqual([401, 401]);
        for (const status of await Promise.all(uses)) expect([200, 401]).toContain(status);
      }),
    );
  });

  it("expire", async () => {
    const now = api().store.clock.now();
    const expiresAt = new Date(now + HOUR_MS).toISOString();
    const made = await make({ name: "short", expiresAt });
    expect(made.expiresAt).toBe(expiresAt);
    const token = (await call("POST", "/access-tokens", { name: "short", expiresAt })).body;
    expect(token.expiresAt).toBe(expiresAt);
    expect(await statusWith(made.key)).toBe(200);
    expect((await call("GET", "/teams", undefined, bearer(token.token))).status).toBe(200);
    await using tomorrow = await api().createApi({ ownerId: "later" }, { now: () => api().store.clock.now() + HOUR_MS });
    const { url } = await tomorrow.listen();
    expect((await api().call("GET", "/v2/sandboxes", { key: made.key, url })).body).toMatchObject({
      code: 401,
      message: expect.stringMatching(/^Invalid API key.*\nThe API key has expired$/),
    });
    expect((await call("GET", "/teams", undefined, bearer(token.token), url)).body).toMatchObject({
      code: 401,
      message: expect.stringMatching(/^Invalid Access token.*\nThe access token has expired$/),
    });
    expect(await statusWith(api().apiKey, url)).toBe(200);
  });

  it("are refused with wrong values", async () => {
    const past = new Date(api().store.clock.now() - 1).toISOString();
    const bodies = [undefined, {}, [], { name: "" }, { name: 1 }, { name: "a\0" }, { name: "\ud800" }, { name: "x".repeat(257) }];
    for (const body of [...bodies, { name: "x", expiresAt: past }, { name: "x", expiresAt: "tomorrow" }, { name: "x", expiresAt: 1 }]) {
      for (const path of ["/api-keys", "/access-tokens"]) {
        expect((await call("POST", path, body)).body, JSON.stringify(body)).toEqual({
          code: 400,
          message: expect.stringMatching(/^validation error/),
        });
      }
    }
    expect((await call("PATCH", `/api-keys/${randomUUID()}`, { name: "a\0" })).status).toBe(400);
    for (const path of ["/api-keys/nope", "/access-tokens/nope", "/api-keys/%00"]) {
      expect((await call("DELETE", path)).body).toMatchObject({ code: 400 });
    }
    expect((await call("GET", "/api-keys")).body).toHaveLength(1);
  });

  it("of another team can't be seen, changed or deleted", async () => {
    const [theirs] = (await call("GET", "/api-keys", undefined, admin(await otherTeam()))).body;
    expect(await call("PATCH", `/api-keys/${theirs.id}`, { name: "mine" })).toMatchObject(NOT_FOUND);
    expect(await call("DELETE", `/api-keys/${theirs.id}`)).toMatchObject(NOT_FOUND);
    const asTheirs = { ...bearer(), "X-Team-ID": await otherTeam() };
    for (const [method, path, body] of [
      ["GET", "/api-keys"],
      ["POST", "/api-keys", { name: "x" }],
      ["PATCH", `/api-keys/${theirs.id}`, { name: "x" }],
      ["DELETE", `/api-keys/${theirs.id}`],
    ] as const) {
      expect((await call(method, path, body, asTheirs)).body).toEqual({ code: 403, message: "You are not allowed to access this team" });
      expect((await call(method, path, body, { ...bearer(), "X-Team-ID": "x" })).body).toEqual({ code: 400, message: "Invalid team ID" });
      expect((await api().call(method, path, { body })).body.message).toBe("authorization header is missing");
    }
    expect(await statusWith(api().otherKey)).toBe(200);
    expect((await call("POST", "/api-keys", { name: "x" }, admin())).status).toBe(401);
  });

  it("of a user with several teams are made for the one that the header names", async () => {
    const { identity } = api().store;
    const member = await identity.findFirstMember(api().teamId);
    const second = await otherTeam();
    await identity.putMembership({ teamId: second, userId: member?.userId ?? "", isDefault: false });
    const made = await call("POST", "/api-keys", { name: "theirs" }, { ...bearer(), "X-Team-ID": second.toUpperCase() });
    const id = await api().create({}, { key: made.body.key });
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(404);
    expect((await api().call("GET", `/sandboxes/${id}`, { key: api().otherKey })).status).toBe(200);
    expect((await call("GET", "/api-keys")).body).toHaveLength(1);
  });

  it("are made and deleted by the operator for any team", async () => {
    const headers = { "X-Admin-Token": api().adminToken };
    const path = `/admin/teams/${await otherTeam()}/api-keys`;
    const made = await call("POST", path, { name: "by the operator" }, headers);
    expect(made.status).toBe(201);
    expect(Value.Errors(CreatedApiKeySchema, made.body)).toEqual([]);
    expect(made.body).not.toHaveProperty("createdBy");
    expect(await statusWith(made.body.key)).toBe(200);
    expect((await call("POST", `/admin/teams/${randomUUID()}/api-keys`, { name: "x" }, headers)).body).toEqual({
      code: 404,
      message: "Team not found",
    });
    expect((await call("POST", "/admin/teams/x/api-keys", { name: "x" }, headers)).body).toEqual({ code: 400, message: "Invalid team ID" });
    expect((await call("DELETE", `/admin/teams/${api().teamId}/api-keys/${made.body.id}`, undefined, headers)).body).toEqual({
      code: 404,
      message: "API key not found",
    });
    expect((await call("DELETE", `${path}/${made.body.id}`, undefined, headers)).status).toBe(204);
    expect(await statusWith(made.body.key)).toBe(401);
    expect((await call("POST", path, { name: "x" }, { "X-Admin-Token": "wrong" })).status).toBe(401);
    for (const wrong of [bearer(), { "X-API-Key": api().apiKey }])
      expect((await call("POST", path, { name: "x" }, wrong)).status).toBe(401);
  });

  it("access tokens belong to their user", async () => {
    const made = await call("POST", "/access-tokens", { name: "laptop" });
    expect(made.status).toBe(201);
    expect(Value.Errors(CreatedAccessTokenSchema, made.body)).toEqual([]);
    expect(made.body.token).toMatch(/^sk_e2b_[0-9a-f]{40}$/);
    expect(made.body.mask).toMatchObject({ prefix: "sk_e2b_", valueLength: 40 });
    const stranger = randomUUID();
    await api().store.identity.putUser({ id: stranger, name: "Stranger", createdAt: 1 });
    const theirs = await api().store.keys.removeToken(stranger, made.body.id, 1);
    expect(theirs).toBe(false);
    expect((await call("GET", "/api-keys", undefined, bearer(made.body.token))).status).toBe(200);
    expect((await call("DELETE", `/access-tokens/${made.body.id}`)).status).toBe(204);
    expect((await call("GET", "/api-keys", undefined, bearer(made.body.token))).status).toBe(401);
    expect(await call("DELETE", `/access-tokens/${made.body.id}`)).toMatchObject(NOT_FOUND);
    expect(await call("DELETE", `/access-tokens/${randomUUID()}`)).toMatchObject(NOT_FOUND);
  });

  it("of the secrets file stay deleted after a restart", async () => {
    const [seeded] = (await call("GET", "/api-keys")).body;
    expect((await call("DELETE", `/api-keys/${seeded.id}`)).status).toBe(204);
    expect(await statusWith(api().apiKey)).toBe(401);
    const member = await api().store.identity.findFirstMember(api().teamId);
    const secrets = { apiKey: new Secret(api().apiKey), accessToken: new Secret(api().accessToken) };
    const seed = { teamId: api().teamId, userId: member?.userId ?? "", ...secrets };
    // A key of the same name as the one in the file is not taken for it.
    const same = await make({ name: seeded.name });
    await seedIdentity(api().store, seed, systemClock);
    await seedIdentity(api().store, { ...seed, apiKey: new Secret(`e2b_${"cd".repeat(20)}`) }, systemClock);
    expect(await statusWith(api().apiKey)).toBe(401);
    expect(await statusWith(same.key)).toBe(200);
    expect(await statusWith(`e2b_${"cd".repeat(20)}`)).toBe(200);
  });
});
