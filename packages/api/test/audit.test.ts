// The audit log: every change and every refusal, with who, from where and with which key.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { FakeNode } from "@skerry/testkit/fake-node";
import { waitUntil } from "@skerry/testkit/wait-until";
import { NodeService } from "@skerry/wire/node";
import { Type } from "typebox";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { AuditLineSchema } from "../src/http/output/encode-audit-line.ts";
import { startDatabases } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { documentOf, isPublic, operationsOf, ownedBy, send, takes } from "./every-operation.ts";
import { KillableApi } from "./killable-api.ts";
import { TeamCalls } from "./team-calls.ts";

describeOnEachDatabase("the audit log", { inSample: "both" }, (api) => {
  const calls = new TeamCalls(api);
  const admin = (path: string) => api().call("GET", path, { key: null, headers: { "X-Admin-Token": api().adminToken } });
  const lines = async (query = "", options = {}) => {
    const answer = await api().call("GET", `/audit?order=asc&${query}`, options);
    expect(answer.status, answer.text).toBe(200);
    expect(Value.Errors(Type.Array(AuditLineSchema), answer.body)).toEqual([]);
    return answer.body;
  };

  it("has a line for each change: who, from where, with which key, to what, and how it ended", async () => {
    const id = await api().create();
    await api().call("GET", `/sandboxes/${id}`);
    await api().call("DELETE", `/sandboxes/${id}`);
    const again = await api().call("DELETE", `/sandboxes/${id}`);
    const [created, killed, failed, ...more] = await lines();
    expect(more, "a read has no line").toEqual([]);
    const keyId = (await api().store.keys.listOfTeam(api().teamId))[0]?.id ?? "";
    const mask = `${api().apiKey.slice(0, 6)}…${api().apiKey.slice(-4)}`;
    const by = {
      actor: { type: "key", id: keyId },
      credential: { id: keyId, mask },
      address: "127.0.0.1",
      team_id: api().teamId,
      count: 1,
    };
    expect(created).toMatchObject({ ...by, number: 1, operation: "createSandbox", outcome: "done", status: 201, made_ids: [id] });
    expect(killed).toMatchObject({ ...by, number: 2, operation: "killSandbox", outcome: "done", status: 204, subject_id: id });
    expect(failed).toMatchObject({ ...by, operation: "killSandbox", outcome: "failed", status: 404, reason: "not_found" });
    expect(failed.request_id).toBe(again.headers["x-request-id"]);
    expect(Date.now() - Date.parse(created.timestamp)).toBeLessThan(60_000);
    const user = await calls.as(api().accessToken, "POST", "/api-keys", { body: { name: "n" } });
    const [made] = await lines("operation=createApiKey");
    expect(made).toMatchObject({ actor: { type: "user" }, team_id: api().teamId, made_ids: [user.body.id] });
    expect(made.user_id).toBe(made.actor.id);
    expect(made.credential.mask).toBe(`${api().accessToken.slice(0, 9)}…${api().accessToken.slice(-4)}`);
    for (const secret of [api().apiKey, api().accessToken, user.body.key]) {
      expect(JSON.stringify(await api().store.audit.list({}, { order: "asc", limit: 100 }))).not.toContain(secret.slice(8, -4));
    }
  });

  it("has the refusals: of the wrong credential for the operator alone, of the wrong scope for the team, too", async () => {
    const wrong = `e2b_${"5".repeat(40)}`;
    await api().call("POST", "/v2/sandboxes", { key: wrong, body: { templateID: "base" } });
    await api().call("GET", "/v2/sandboxes", { key: "hunter2" });
    await api().call("GET", "/admin/audit", { key: null, headers: { "X-Admin-Token": "guess" } });
    const narrow = await calls.key({ scopes: ["sandboxes:read"] });
    await api().call("GET", "/secrets", { key: narrow });
    expect((await api().call("GET", "/audit", { key: narrow })).body.error_code).toBe("missing_scope");
    const refused = (await admin("/admin/audit?outcome=refused&order=asc")).body;
    expect(refused.map(({ operation, status, reason }: Record<string, unknown>) => [operation, status, reason])).toEqual([
      ["createSandbox", 401, "unauthenticated"],
      ["listSandboxes", 401, "unauthenticated"],
      ["listAllAuditLines", 401, "unauthenticated"],
      ["listSecrets", 403, "missing_scope"],
      ["listAuditLines", 403, "missing_scope"],
    ]);
    expect(refused[0]).toMatchObject({ actor: { type: "anyone" }, credential: { mask: "e2b_55…5555" } });
    expect(refused[1].credential, "what is no key may be a password").toBeUndefined();
    expect((await lines("outcome=refused")).map(({ operation }: { operation: string }) => operation)).toEqual([
      "listSecrets",
      "listAuditLines",
    ]);
    expect(await lines("", { key: api().otherKey })).toEqual([]);
    expect(await lines(`teamID=${api().teamId}`, { key: api().otherKey }), "the team is that of the key").toEqual([]);
  });

  it("stays small under a flood of refusals, and says how many there were", async () => {
    await using second = await api().createApi({ ownerId: "flooded" });
    const { url } = await second.listen();
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: 25 }, () => api().call("GET", "/v2/sandboxes", { key: `e2b_${"5".repeat(40)}`, url })));
    }
    await second.close();
    const { items } = await api().store.audit.list({}, { order: "asc", limit: 100 });
    expect(items.map(({ count, status, operation }) => [count, status, operation])).toEqual([
      [1, 401, "listSandboxes"],
      [99, 401, "listSandboxes"],
    ]);
  });

  it("exports every line, of the team or of all, and nothing changes or deletes one", async () => {
    for (let count = 0; count < 3; count++) await api().create();
    await api().create({}, { key: api().otherKey });
    const exported = (text: string) =>
      text
        .split("\n")
        .slice(0, -1)
        .map((one) => JSON.parse(one));
    const own = await api().call("GET", "/audit/export");
    expect(own.headers["content-type"]).toBe("application/x-ndjson");
    expect(exported(own.text).map(({ team_id }) => team_id)).toEqual(Array(3).fill(api().teamId));
    expect(exported((await admin("/admin/audit/export?operation=createSandbox")).text).length).toBe(4);
    expect(exported((await admin(`/admin/audit/export?teamID=${api().teamId}&order=desc`)).text).map(({ number }) => number)).toEqual([
      3, 2, 1,
    ]);
    const page = await api().call("GET", "/audit?limit=2");
    expect(page.body.map(({ number }: { number: number }) => number)).toEqual([3, 2]);
    const next = page.headers["x-next-token"];
    expect((await api().call("GET", `/audit?limit=2&nextToken=${next}`)).body.map(({ number }: { number: number }) => number)).toEqual([1]);
    expect((await api().call("GET", `/audit?order=asc&nextToken=${next}`)).status).toBe(400);
    for (const wrong of ["start=x", "outcome=x", "nextToken=x", "limit=0"])
      expect((await api().call("GET", `/audit?${wrong}`)).status).toBe(400);
    const changing = operationsOf(await documentOf(api())).filter(({ path, method }) => path.includes("audit") && method !== "GET");
    expect(changing).toEqual([]);
  });

  it("has a line for every operation that changes something, or was refused, with the team if there is one", async () => {
    const [document, owned] = [await documentOf(api()), await ownedBy(api())];
    const operations = operationsOf(document).filter((operation) => !isPublic(operation));
    const nothing = { ...owned, sandboxID: `i${"0".repeat(20)}`, templateID: "0".repeat(20), target: "0".repeat(20), secretID: "sec_x" };
    const missing: string[] = [];
    for (const operation of operations) {
      const isChange = operation.method !== "GET" && operation.operationId !== "suspendPlatform";
      if (!isChange) continue;
      const headers: Record<string, string> = takes(operation, "apiKey")
        ? { "X-API-Key": api().apiKey }
        : takes(operation, "accessToken")
          ? { Authorization: `Bearer ${api().accessToken}`, "X-Team-ID": api().teamId }
          : { "X-Admin-Token": api().adminToken };
      const answer = await send(api(), operation, { owned: nothing, document, headers });
      const found = (await admin(`/admin/audit?requestID=${answer.headers["x-request-id"]}`)).body;
      const line = found[0];
      if (line?.operation !== operation.operationId || line.status !== answer.status) missing.push(operation.operationId);
      else if (takes(operation, "apiKey") && line.team_id !== api().teamId) missing.push(`${operation.operationId}: team`);
    }
    expect(missing).toEqual([]);
  });

  it("names the client behind a trusted proxy, and believes nobody else", async () => {
    const forwarded = { headers: { "X-Forwarded-For": "198.51.100.7, 192.0.2.9" } };
    await api().create({}, forwarded);
    await using behind = await api().createApi({ ownerId: "behind", trustedProxies: ["127.0.0.0/8", "192.0.2.9"] });
    await api().create({}, { ...forwarded, url: (await behind.listen()).url });
    await behind.close();
    expect((await lines()).map(({ address }: { address: string }) => address).toSorted()).toEqual(["127.0.0.1", "198.51.100.7"]);
  });
});

it("the audit log has a line for a change whose process was killed before it answered", async () => {
  await using databases = await startDatabases();
  const node = new FakeNode("node1");
  const server = createServer(connectNodeAdapter({ routes: (router) => router.service(NodeService, node.service) }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using api = await KillableApi.over(
    await databases.create("sqlite"),
    node,
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
  node.create = "hang";
  const answer = api.call("POST", "/v2/sandboxes", { body: { templateID: "base" } }).catch((error: unknown) => error);
  await waitUntil("the node is at it", () => node.hanging > 0);
  await api.kill();
  expect(await answer).toBeInstanceOf(Error);
  node.create = "ok";
  node.release();
  await api.begin();
  const list = async () => (await api.store.audit.list({}, { order: "asc", limit: 10 })).items;
  await waitUntil("the line is complete", async () => (await list()).length > 0);
  expect(await list()).toMatchObject([
    { operation: "createSandbox", outcome: "unknown", teamId: api.teamId, status: null, actor: expect.stringMatching(/^key:/) },
  ]);
  server.closeAllConnections();
  server.close();
});
