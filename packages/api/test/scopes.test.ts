// What keys and tokens with scopes, members with roles, and keys for certain sandboxes may do. Calls every operation of the served document.

import type { Role } from "@skerry/store";
import { expect, it } from "vitest";
import { allows, KEY_SCOPES, ROLE_SCOPES, type Scope } from "../src/keys/scopes.ts";
import type { Answer } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { documentOf, isPublic, type Operation, operationsOf, ownedBy, send, stateOf, takes } from "./every-operation.ts";
import { TeamCalls } from "./team-calls.ts";

const MISSING = "missing_scope";
const SANDBOX_ID = `i${"0".repeat(20)}`;

describeOnEachDatabase("scopes", { inSample: "both" }, (api) => {
  const calls = new TeamCalls(api);
  const isRefused = ({ body }: Answer) => body?.error_code === MISSING;
  const operations = async (scheme: string): Promise<readonly Operation[]> =>
    operationsOf(await documentOf(api())).filter((operation) => !isPublic(operation) && takes(operation, scheme));

  it("of an API key decide over every operation", async () => {
    const [document, owned] = [await documentOf(api()), await ownedBy(api())];
    const before = await stateOf(api(), owned);
    const keys = new Map<Scope, { only: string; without: string }>();
    for (const scope of KEY_SCOPES) {
      const others = KEY_SCOPES.filter((other) => other !== scope);
      keys.set(scope, { only: await calls.key({ scopes: [scope] }), without: await calls.key({ scopes: others }) });
    }
    const made = await operations("apiKey");
    expect(made.length).toBeGreaterThan(40);
    for (const operation of made) {
      const about = `${operation.operationId} needs ${operation["x-scope"]}`;
      const { only = "", without = "" } = keys.get(operation["x-scope"] as Scope) ?? {};
      const refused = await send(api(), operation, { owned, document, headers: { "X-API-Key": without } });
      expect({ about, status: refused.status, body: refused.body }).toEqual({
        about,
        status: 403,
        body: { code: 403, message: `The API key does not have the scope "${operation["x-scope"]}"`, error_code: MISSING },
      });
      // With nothing to act on, so that the next operation finds everything.
      const nothing = { ...owned, sandboxID: SANDBOX_ID, templateID: "0".repeat(20), target: "0".repeat(20), secretID: "sec_x" };
      const admitted = await send(api(), operation, { owned: nothing, document, headers: { "X-API-Key": only } });
      expect({ about, isRefused: isRefused(admitted) }).toEqual({ about, isRefused: false });
    }
    expect((await stateOf(api(), owned)) as object).toMatchObject({ team: (before as { team: object }).team });
  });

  it("of an access token, and roles, decide over every operation of users", async () => {
    const [document, owned] = [await documentOf(api()), await ownedBy(api())];
    const team = api().teamId;
    const users = new Map<Role, string>();
    for (const role of Object.keys(ROLE_SCOPES) as Role[]) users.set(role, (await calls.user(team, role)).token);
    const made = await operations("accessToken");
    const scopes = [...new Set(made.map((operation) => operation["x-scope"]))];
    const without = new Map<string, string>();
    for (const scope of scopes) {
      const given = scopes.filter((other) => other !== scope);
      const token = await calls.as(api().accessToken, "POST", "/access-tokens", { body: { name: "t", scopes: given } });
      expect(token.status, token.text).toBe(201);
      without.set(scope, token.body.token);
    }
    // Deletes and changes nothing, whatever the caller may do.
    const nothing = { ...owned, templateID: "0".repeat(20), target: "0".repeat(20), apiKeyID: owned.userID ?? "" };
    const before = await stateOf(api(), owned);
    for (const operation of made) {
      const needed = operation["x-scope"];
      const about = `${operation.operationId} needs ${needed}`;
      const bearer = (token = "") => ({ Authorization: `Bearer ${token}`, "X-Team-ID": team });
      const refused = await send(api(), operation, { owned, document, headers: bearer(without.get(needed)) });
      expect({ about, body: refused.body }).toEqual({
        about,
        body: { code: 403, message: `The access token does not have the scope "${needed}"`, error_code: MISSING },
      });
      for (const [role, token] of users) {
        if (allows(ROLE_SCOPES[role], needed as Scope)) continue;
        const denied = await send(api(), operation, { owned: nothing, document, headers: bearer(token) });
        expect({ about: `${role}: ${about}`, status: denied.status, isRefused: isRefused(denied) }).toEqual({
          about: `${role}: ${about}`,
          status: 403,
          isRefused: true,
        });
      }
    }
    expect(await stateOf(api(), owned)).toEqual(before);
  });

  it("of what a credential makes are no more than its own", async () => {
    const make = (path: string, body: object, token = api().accessToken) => calls.as(token, "POST", path, { body: { name: "n", ...body } });
    const limited = (await make("/access-tokens", { scopes: ["keys:write", "account:write", "sandboxes:*"] })).body;
    expect(limited.scopes).toEqual(["keys:write", "account:write", "sandboxes:*"]);
    expect((await make("/access-tokens", {}, limited.token)).body.scopes).toEqual(limited.scopes);
    for (const scopes of [["*"], ["sandboxes:read", "secrets:read"], ["account:*"]]) {
      expect((await make("/access-tokens", { scopes }, limited.token)).body, String(scopes)).toMatchObject({
        code: 403,
        error_code: MISSING,
      });
    }
    expect((await make("/api-keys", {}, limited.token)).status).toBe(403);
    expect((await make("/api-keys", { scopes: ["sandboxes:read"] }, limited.token)).status).toBe(201);
    const [signedIn] = (await calls.as(limited.token, "GET", "/teams")).body;
    expect((await api().call("GET", "/secrets", { key: signedIn.apiKey })).body).toMatchObject({ error_code: MISSING });
    expect((await api().call("GET", "/v2/sandboxes", { key: signedIn.apiKey })).status).toBe(200);
    const wrong = [
      [],
      ["x"],
      ["sandboxes"],
      ["keys:read"],
      ["account:*", "keys:write"],
      ["team:write"],
      "sandboxes:read",
      [1],
      Array(65).fill("*"),
    ];
    for (const scopes of wrong) expect((await make("/api-keys", { scopes })).status, JSON.stringify(scopes)).toBe(400);
    expect((await make("/api-keys", { scopes: ["*", "*"] })).body.scopes).toEqual(["*"]);
    const listed = (await calls.as(api().accessToken, "GET", "/access-tokens")).body;
    expect(listed.map(({ scopes }: { scopes?: string[] }) => scopes)).toEqual([undefined, limited.scopes, limited.scopes]);
    expect(Date.parse(listed[1].lastUsed)).toBeGreaterThan(0);
  });

  it("include sandboxes with certain metadata alone", async () => {
    const key = await calls.key({ sandboxMetadata: { tenant: "a" } });
    const create = (body: object, by = key) => api().call("POST", "/v2/sandboxes", { key: by, body: { templateID: "base", ...body } });
    const get = (id: string) => api().call("GET", `/sandboxes/${id}`, { key });
    const mine = await create({});
    expect((await get(mine.body.sandboxID)).body.metadata).toEqual({ tenant: "a" });
    const more = await create({ metadata: { tenant: "a", job: "1" } });
    expect((await create({ metadata: { tenant: "b" } })).status).toBe(403);
    expect((await create({ metadata: { tenant: "" } })).status).toBe(403);
    const foreign = [
      await api().create({ metadata: { tenant: "b" } }),
      await api().create({ metadata: { Tenant: "a" } }),
      await api().create(),
    ];
    const lists = ["/v2/sandboxes", "/sandboxes", "/v2/sandboxes?state=running", "/v2/sandboxes?metadata=tenant%3Da"];
    const ids = [mine.body.sandboxID, more.body.sandboxID].sort();
    for (const path of lists) {
      const { body, headers } = await api().call("GET", path, { key });
      expect(body.map(({ sandboxID }: { sandboxID: string }) => sandboxID).sort(), path).toEqual(ids);
      if (path.startsWith("/v2")) expect(headers["x-total-running"]).toBe("2");
    }
    for (const path of ["/v2/sandboxes?metadata=tenant%3Db", "/sandboxes?metadata=tenant%3Db"]) {
      expect((await api().call("GET", path, { key })).body, path).toEqual([]);
    }
    const document = await documentOf(api());
    const before = (await api().call("GET", "/v2/sandboxes")).body;
    for (const operation of await operations("apiKey")) {
      if (!operation.path.includes("{sandboxID}")) continue;
      for (const sandboxID of foreign) {
        const owned = { sandboxID, linkID: "lnk_x" };
        const answer = await send(api(), operation, { owned, document, headers: { "X-API-Key": key } });
        const unknown = await send(api(), operation, {
          owned: { ...owned, sandboxID: SANDBOX_ID },
          document,
          headers: { "X-API-Key": key },
        });
        expect({ id: operation.operationId, status: answer.status }).toEqual({ id: operation.operationId, status: 404 });
        expect(answer.text.replaceAll(sandboxID, "ID")).toBe(unknown.text.replaceAll(SANDBOX_ID, "ID"));
      }
    }
    expect((await api().call("GET", "/v2/sandboxes")).body).toEqual(before);
    // Lists that would show more than its sandboxes.
    for (const path of ["/snapshots", "/sandboxes/metrics?sandbox_ids=x", `/teams/${api().teamId}/metrics`]) {
      expect((await api().call("GET", path, { key })).body, path).toMatchObject({ code: 403, error_code: MISSING });
    }
    expect((await api().call("GET", "/templates", { key })).body).toMatchObject({ error_code: MISSING });
  });

  it("let a key for certain sandboxes start snapshots of these alone", async () => {
    const key = await calls.key({ sandboxMetadata: { tenant: "a" } });
    const snapshotOf = async (tenant: string) => {
      const id = await api().create({ metadata: { tenant } });
      return (await api().call("POST", `/sandboxes/${id}/snapshots`, { body: {} })).body.snapshotID;
    };
    const [mine, foreign] = [await snapshotOf("a"), await snapshotOf("b")];
    const start = (templateID: string) => api().call("POST", "/v2/sandboxes", { key, body: { templateID } });
    expect((await start(mine)).status).toBe(201);
    expect((await start(foreign)).body).toMatchObject({ code: 404, message: expect.stringMatching(/not found$/) });
    const headers = { "Idempotency-Key": "same" };
    const body = { templateID: "base", metadata: { tenant: "b" } };
    const theirs = await api().call("POST", "/v2/sandboxes", { body, headers });
    expect(theirs.status).toBe(201);
    // A repeated request of somebody else gives no answer away that the key may not have.
    expect((await api().call("POST", "/v2/sandboxes", { key, body, headers })).status).toBe(403);
    expect((await api().call("POST", "/v2/sandboxes", { key, body: { templateID: "base" }, headers })).status).toBe(422);
    const tooMuch = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, "v"]));
    for (const sandboxMetadata of [{}, tooMuch, { k: "x".repeat(257) }, { k: "a\0" }, { k: 1 }, []]) {
      const made = await calls.as(api().accessToken, "POST", "/api-keys", { body: { name: "k", sandboxMetadata } });
      expect(made.status, JSON.stringify(sandboxMetadata)).toBe(400);
    }
  });
});
