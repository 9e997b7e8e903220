import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { ErrorSchema, ListedSandboxSchema, SandboxDetailSchema, SandboxSchema } from "../src/http/schemas.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("sandboxes", { inSample: "sqlite" }, (api) => {
  it("are created, read and killed", async () => {
    const body = { templateID: "base", metadata: { a: "b" }, envVars: { X: "1" }, allow_internet_access: false, unknown: { deep: 1 } };
    const created = await api().call("POST", "/v2/sandboxes", { body });
    expect(created.status).toBe(201);
    expect(Value.Errors(SandboxSchema, created.body)).toEqual([]);
    expect(created.body).toMatchObject({ templateID: api().templateId, alias: "base", clientID: "6532622b", envdVersion: "0.6.4" });
    expect(created.body.envdAccessToken).toMatch(/^[0-9a-f]{64}$/);
    expect(created.body).not.toHaveProperty("domain");
    const id = created.body.sandboxID;
    expect(id).toMatch(/^i[a-z0-9]{20}$/);

    const { spec } = api().node.held.get(id) ?? {};
    expect(spec).toMatchObject({
      accessToken: created.body.envdAccessToken,
      options: { allowInternetAccess: false },
      envVars: { X: "1" },
      memoryMb: 512,
    });

    const got = await api().call("GET", `/sandboxes/${id}-6532622b`);
    expect(Value.Errors(SandboxDetailSchema, got.body)).toEqual([]);
    expect(got.body).toMatchObject({ sandboxID: id, state: "running", metadata: { a: "b" }, cpuCount: 2, volumeMounts: [] });
    expect(got.body).toMatchObject({ envdAccessToken: created.body.envdAccessToken, allowInternetAccess: false });
    expect(got.body.lifecycle).toEqual({ autoResume: false, onTimeout: "kill" });
    expect(Date.parse(got.body.endAt) - Date.parse(got.body.startedAt)).toBe(300_000);

    expect(await api().call("DELETE", `/sandboxes/${id}`)).toMatchObject({ status: 204, text: "" });
    for (const method of ["GET", "DELETE"]) {
      const gone = await api().call(method, `/sandboxes/${id}`);
      const ending = "\\. It ended at 20[0-9T:.-]+Z: request$";
      expect(gone.body).toEqual({
        code: 404,
        message: expect.stringMatching(`^Sandbox "${id}" doesn't exist or you don't have access to it${ending}`),
      });
      expect(Value.Errors(ErrorSchema, gone.body)).toEqual([]);
    }
    expect(api().node.held.size).toBe(0);
  });

  it("get the time of their generation of the operation when none is asked for", async () => {
    for (const [path, seconds] of [
      ["/sandboxes", 15],
      ["/v2/sandboxes", 300],
    ] as const) {
      const { body } = await api().call("POST", path, { body: { templateID: "base", secure: false } });
      expect(body.envdAccessToken).toMatch(/^[0-9a-f]{64}$/);
      const got = await api().call("GET", `/sandboxes/${body.sandboxID}`);
      expect(Date.parse(got.body.endAt) - Date.parse(got.body.startedAt)).toBe(seconds * 1000);
      expect(got.body).not.toHaveProperty("allowInternetAccess");
      expect(got.body).not.toHaveProperty("metadata");
    }
  });

  it("are connected to, which only ever extends", async () => {
    const id = await api().create({ timeout: 100 });
    const endAt = async () => Date.parse((await api().call("GET", `/sandboxes/${id}`)).body.endAt);
    const first = await endAt();
    const token = (await api().call("GET", `/sandboxes/${id}`)).body.envdAccessToken;
    const short = await api().call("POST", `/sandboxes/${id}/connect`, { body: { timeout: 5 } });
    expect(short).toMatchObject({ status: 200, body: { sandboxID: id, envdAccessToken: token } });
    expect(Value.Errors(SandboxSchema, short.body)).toEqual([]);
    expect(await endAt()).toBe(first);
    expect((await api().call("POST", `/sandboxes/${id}/connect`, { body: { timeout: 0 } })).status).toBe(200);
    // A missing body, an empty body and an empty object all mean 300 seconds.
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(200);
    expect(Math.abs((await endAt()) - Date.now() - 300_000)).toBeLessThan(60_000);
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`, { raw: "" })).status).toBe(200);
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`, { body: {} })).status).toBe(200);
    expect((await api().call("POST", `/sandboxes/${id}/connect`)).body.message).toMatch(/^validation error/);
    const tooLong = await api().call("POST", "/v2/sandboxes/iunknown/connect", { body: { timeout: 24 * 3600 + 1 } });
    expect(tooLong.body).toEqual({ code: 400, message: "Timeout cannot be greater than 24 hours" });
    expect((await api().call("POST", "/v2/sandboxes/iunknown/connect")).status).toBe(404);
  });

  it("are kept alive, for at least 15 seconds and at most their longest life", async () => {
    const id = await api().create({ timeout: 5 });
    /** Expects that the request lets the sandbox live for this long from then on. */
    const expectLife = async (lifeMs: number, path: string, body?: object) => {
      const before = Date.now();
      expect((await api().call("POST", `/sandboxes/${id}/${path}`, body && { body })).status).toBe(204);
      const endAt = Date.parse((await api().call("GET", `/sandboxes/${id}`)).body.endAt);
      expect(endAt).toBeGreaterThanOrEqual(before + lifeMs - 1_000);
      expect(endAt).toBeLessThanOrEqual(Date.now() + lifeMs + 1_000);
      return endAt;
    };
    await expectLife(15_000, "refreshes");
    const endAt = await expectLife(3_600_000, "refreshes", { duration: 3600 });
    expect((await api().call("POST", `/sandboxes/${id}/refreshes`, { body: { duration: 1 } })).status).toBe(204);
    expect(Date.parse((await api().call("GET", `/sandboxes/${id}`)).body.endAt)).toBe(endAt);
    expect((await api().call("POST", `/sandboxes/${id}/refreshes`, { body: { duration: 3601 } })).status).toBe(400);
    // A value beyond the limit is reduced to it, counted from the start.
    expect((await api().call("POST", `/sandboxes/${id}/timeout`, { body: { timeout: 2_147_483_647 } })).status).toBe(204);
    const { body } = await api().call("GET", `/sandboxes/${id}`);
    expect(Date.parse(body.endAt) - Date.parse(body.startedAt)).toBe(24 * 3_600_000);
    await expectLife(20_000, "timeout", { timeout: 20 });
  });

  it("of another team do not exist", async () => {
    const id = await api().create();
    const foreign = { key: api().otherKey };
    const missing = { code: 404, message: `Sandbox "${id}" doesn't exist or you don't have access to it` };
    for (const [method, path, body] of [
      ["GET", `/sandboxes/${id}`, undefined],
      ["DELETE", `/sandboxes/${id}`, undefined],
      ["POST", `/sandboxes/${id}/timeout`, { timeout: 0 }],
      ["POST", `/sandboxes/${id}/refreshes`, {}],
      ["POST", `/sandboxes/${id}/connect`, { timeout: 5 }],
      ["POST", `/v2/sandboxes/${id}/connect`, undefined],
    ] as const) {
      expect((await api().call(method, path, { ...foreign, body })).body).toEqual(missing);
    }
    expect((await api().call("GET", "/v2/sandboxes", foreign)).body).toEqual([]);
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(200);
  });

  it("are made from templates by name, id, tag and build", async () => {
    const { templateId, buildId, teamId, store } = api();
    await store.templates.putTemplate({ id: "tplprivate", teamId, isPublic: false, now: 1 });
    await store.templates.putAlias({ namespace: "default", alias: "mine", templateId: "tplprivate", now: 1 });
    for (const reference of ["base", "BASE ", templateId, "base:default", `base:${buildId}`, `${templateId}:${buildId}`]) {
      expect(await api().call("POST", "/v2/sandboxes", { body: { templateID: reference } })).toMatchObject({ status: 201 });
    }
    for (const [reference, status, message] of [
      ["nope", 404, "template 'nope' not found"],
      ["other/base", 404, "template 'other/base' not found"],
      ["base:v9", 404, "tag 'v9' does not exist for template 'base'"],
      [`base:${crypto.randomUUID()}`, 404, expect.stringMatching(/^tag '.*' does not exist for template 'base'$/)],
      ["mine", 404, "tag 'default' does not exist for template 'mine'"],
      ["a b", 400, expect.stringMatching(/^Invalid template reference: invalid template ID: /)],
    ] as const) {
      const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: reference } });
      expect(answer.body).toEqual({ code: status, message });
    }
    const foreign = await api().call("POST", "/v2/sandboxes", { body: { templateID: "default/mine" }, key: api().otherKey });
    expect(foreign.body).toEqual({ code: 404, message: "template 'default/mine' not found" });
    const templates = await api().call("GET", "/templates");
    expect(templates.body.find((template: { templateID: string }) => template.templateID === templateId)).toMatchObject({
      spawnCount: 6,
      buildID: buildId,
      names: ["base"],
      createdBy: null,
    });
  });

  it("carry any metadata that is text", async () => {
    const metadata = { "ключ 🔑": 'a"b\\c\n=&%', "": "", big: "x".repeat(60_000), constructor: "c" };
    const id = await api().create({ metadata });
    expect((await api().call("GET", `/sandboxes/${id}`)).body.metadata).toEqual(metadata);
    const [listed] = (await api().call("GET", "/v2/sandboxes")).body;
    expect(Value.Errors(ListedSandboxSchema, listed)).toEqual([]);
    expect(listed.metadata).toEqual(metadata);
  });
});
