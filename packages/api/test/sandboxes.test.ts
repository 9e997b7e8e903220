import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ApiHarness, startDatabases, type TestDatabases } from "./api-harness.ts";

describe.each(["sqlite", "postgres"] as const)("sandboxes over %s", (kind) => {
  let databases: TestDatabases;
  let api: ApiHarness;
  beforeAll(async () => {
    databases = await startDatabases();
  });
  afterAll(async () => await databases[Symbol.asyncDispose]());
  beforeEach(async () => {
    api = await ApiHarness.start(await databases.create(kind));
  });
  afterEach(async () => await api[Symbol.asyncDispose]());

  it("are created, read and killed", async () => {
    const created = await api.call("POST", "/v2/sandboxes", { body: { templateID: "base", metadata: { a: "b" } } });
    expect(created.status).toBe(201);
    const id = created.body.sandboxID;
    const got = await api.call("GET", `/sandboxes/${id}`);
    expect(got.status).toBe(200);
    expect(got.body).toMatchObject({ sandboxID: id, alias: "base", state: "running", metadata: { a: "b" }, cpuCount: 2 });
    expect(Date.parse(got.body.endAt) - Date.parse(got.body.startedAt)).toBe(300_000);
    expect((await api.call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    expect((await api.call("GET", `/sandboxes/${id}`)).status).toBe(404);
    expect((await api.call("DELETE", `/sandboxes/${id}`)).status).toBe(404);
    expect(api.node.held.size).toBe(0);
  });
});
