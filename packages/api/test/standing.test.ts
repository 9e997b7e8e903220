// A blocked and a banned team, with every operation of the served document.

import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { isOpenToBlocked } from "../src/teams/standing.ts";
import type { Answer } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { documentOf, type Operation, operationsOf, ownedBy, send, stateOf, takes } from "./every-operation.ts";

describeOnEachDatabase("the standing of a team", { inSample: "sqlite" }, (api) => {
  const admin = (method: string, path: string, body?: unknown): Promise<Answer> =>
    api().call(method, path, { key: null, headers: { "X-Admin-Token": api().adminToken }, ...(body === undefined ? {} : { body }) });
  const path = () => `/admin/teams/${api().teamId}/standing`;
  const put = async (standing: string, reason?: string) => {
    const answer = await admin("PUT", path(), { standing, reason });
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  };
  const bearer = () => ({ Authorization: `Bearer ${api().accessToken}` });
  const key = () => ({ "X-API-Key": api().apiKey });
  const isOpen = (operation: Operation) => isOpenToBlocked({ method: operation.method, scope: operation["x-scope"] as "sandboxes:read" });
  const BANNED = { code: 403, message: "team is banned" };

  it("is the operator's to read and to set", async () => {
    expect((await admin("GET", path())).body).toEqual({ teamID: api().teamId, standing: "active" });
    expect(await put("blocked", "unpaid")).toEqual({ teamID: api().teamId, standing: "blocked", reason: "unpaid" });
    expect((await admin("GET", path())).body).toEqual({ teamID: api().teamId, standing: "blocked", reason: "unpaid" });
    expect(await put("active")).toEqual({ teamID: api().teamId, standing: "active" });
    expect((await admin("PUT", `/admin/teams/${randomUUID()}/standing`, { standing: "banned" })).status).toBe(404);
    for (const body of [{}, { standing: "gone" }, { standing: "banned", reason: "x" }, { standing: "blocked", reason: "a\nb" }]) {
      expect((await admin("PUT", path(), body)).status).toBe(400);
    }
    expect((await api().call("PUT", path(), { body: { standing: "active" } })).status).toBe(401);
  });

  it("closes every operation to a banned team, and those that change something to a blocked one", async () => {
    const owned = await ownedBy(api());
    const document = await documentOf(api());
    const before = await stateOf(api(), owned);
    const withKey = operationsOf(document).filter((operation) => takes(operation, "apiKey"));
    const ask = (operation: Operation) => send(api(), operation, { owned, document, headers: key() });
    await put("banned");
    for (const operation of withKey) expect((await ask(operation)).text, operation.operationId).toContain("403");
    const plain = withKey.filter(({ path: url }) => !url.startsWith("/secrets"));
    for (const operation of plain) expect((await ask(operation)).body, operation.operationId).toEqual(BANNED);
    await put("blocked", "unpaid");
    const closed = plain.filter((operation) => !isOpen(operation));
    expect(closed.length).toBeGreaterThanOrEqual(20);
    for (const operation of closed) {
      expect((await ask(operation)).body, operation.operationId).toEqual({ code: 403, message: "team is blocked: unpaid" });
    }
    for (const operation of withKey.filter((one) => one.method === "GET" && isOpen(one))) {
      expect((await ask(operation)).status, operation.operationId).not.toBe(403);
    }
    await put("active");
    expect(await stateOf(api(), owned)).toEqual(before);
  });

  it("lets a blocked team delete, and is checked before anything is looked up", async () => {
    const id = await api().create();
    const paused = await api().create();
    expect((await api().call("POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
    await put("blocked");
    const blocked = { code: 403, message: "team is blocked" };
    expect((await api().call("POST", "/sandboxes/iunknown/pause")).body).toEqual(blocked);
    expect((await api().call("POST", "/v2/sandboxes", { raw: "no JSON" })).body).toEqual(blocked);
    expect((await api().call("POST", `/v2/sandboxes/${paused}/connect`)).body).toEqual(blocked);
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(200);
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    expect((await api().call("DELETE", `/sandboxes/${paused}`)).status).toBe(204);
    expect((await api().call("GET", "/v2/sandboxes", { key: api().otherKey })).status).toBe(200);
  });

  describe("counts for users", () => {
    afterEach(async () => await put("active"));

    it("who act for the team", async () => {
      const call = (method: string, url: string, body?: unknown) =>
        api().call(method, url, { key: null, headers: bearer(), ...(body === undefined ? {} : { body }) });
      expect((await call("POST", "/api-keys", { name: "one" })).status).toBe(201);
      await put("blocked");
      expect((await call("POST", "/api-keys", { name: "two" })).body).toEqual({ code: 403, message: "team is blocked" });
      const listed = await call("GET", "/api-keys");
      expect(listed.status).toBe(200);
      expect((await call("DELETE", `/api-keys/${listed.body.at(-1).id}`)).status).toBe(204);
      await put("banned");
      expect((await call("GET", "/api-keys")).body).toEqual(BANNED);
      expect((await call("GET", "/templates")).body).toEqual(BANNED);
      expect((await call("GET", "/teams")).body).toEqual([]);
      const made = await admin("POST", `/admin/teams/${api().teamId}/api-keys`, { name: "x" });
      expect(made.body).toEqual(BANNED);
    });
  });

  it("keeps traffic from waking a sandbox, and the operator from nothing", async () => {
    const id = await api().create({ autoPause: true, autoResume: { enabled: true } });
    expect((await api().call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    await put("blocked");
    const find = async () =>
      await Promise.resolve(
        api().api.routeService.findRoute?.(
          { sandboxId: id, port: 3000, wake: true } as never,
          { signal: AbortSignal.timeout(30_000) } as never,
        ),
      ).then(
        () => "found",
        (error: Error) => error.message,
      );
    expect(await find()).toContain("team is blocked");
    expect(await api().store.sandboxes.find(id)).toMatchObject({ state: "paused" });
    const killed = await admin("POST", `/admin/teams/${api().teamId}/sandboxes/kill`);
    expect(killed.body).toEqual({ killedCount: 0, failedCount: 0 });
    await put("active");
    expect(await find()).toBe("found");
  });
});

describeOnEachDatabase("the rate of requests", { inSample: "sqlite", limits: { requestsPerSecond: 2 } }, (api) => {
  it("is told, and refused with the time to wait when it is exceeded", async () => {
    const list = () => api().call("GET", "/v2/sandboxes");
    const answers = await Promise.all(Array.from({ length: 12 }, list));
    const [ok] = answers.filter(({ status }) => status === 200);
    expect(ok?.headers).toMatchObject({ "ratelimit-limit": "2", "ratelimit-remaining": expect.any(String), "ratelimit-reset": "1" });
    const [refused] = answers.filter(({ status }) => status === 429);
    expect(refused?.body).toEqual({ code: 429, message: "Rate limit exceeded" });
    expect(refused?.headers).toMatchObject({
      "ratelimit-limit": "2",
      "ratelimit-remaining": "0",
      "retry-after": "1",
      "should-retry": "true",
    });
    expect(String(refused?.headers["access-control-expose-headers"])).toMatch(/RateLimit-Limit.*Retry-After/);
    // Another team and another operation are not concerned.
    expect((await api().call("GET", "/v2/sandboxes", { key: api().otherKey })).status).toBe(200);
    expect((await api().call("GET", "/snapshots")).status).toBe(200);
    // A wrong key is no request of the team.
    expect((await api().call("GET", "/snapshots", { key: "e2b_00" })).headers).not.toHaveProperty("ratelimit-limit");
    expect((await api().call("GET", "/health", { key: null })).headers).not.toHaveProperty("ratelimit-limit");
  });
});
