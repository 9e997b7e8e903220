import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { SandboxSchema, SnapshotSchema } from "../src/http/schemas.ts";
import type { CallOptions } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("snapshots", { inSample: "postgres" }, (api) => {
  const take = (id: string, body: unknown = {}, options: CallOptions = {}) =>
    api().call("POST", `/sandboxes/${id}/snapshots`, { body, ...options });
  const list = async (query = "", options: CallOptions = {}) => await api().call("GET", `/snapshots${query}`, options);
  const ids = (answer: { body: { snapshotID: string }[] }) => answer.body.map(({ snapshotID }) => snapshotID);
  const remove = (reference: string, options: CallOptions = {}) =>
    api().call("DELETE", `/templates/${encodeURIComponent(reference)}`, options);
  const stateOf = async (id: string) => (await api().store.sandboxes.find(id))?.state;

  it("are taken of a sandbox that goes on, with and without a name", async () => {
    const id = await api().create();
    const unnamed = await take(id);
    expect(unnamed.status).toBe(201);
    expect(Value.Errors(SnapshotSchema, unnamed.body)).toEqual([]);
    expect(unnamed.body).toEqual({ snapshotID: expect.stringMatching(/^[a-z0-9]{20}:default$/), names: [] });
    expect((await take(id, { name: "Foo" })).body).toEqual({ snapshotID: "default/foo:default", names: ["default/foo"] });
    expect((await take(id, { name: "default/foo:v2" })).body).toEqual({ snapshotID: "default/foo:v2", names: ["default/foo"] });
    expect((await take(id, { name: "foo" })).body.snapshotID).toBe("default/foo:default");
    expect(await stateOf(id)).toBe("running");
    expect(api().node.held.size).toBe(1);
    expect(api().node.images.size).toBe(4);
  });

  it("are what others begin from, with their own ids and tokens", async () => {
    const source = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base", metadata: { a: "b" } } });
    const { body } = await take(source.body.sandboxID, { name: "foo" });
    await api().call("DELETE", `/sandboxes/${source.body.sandboxID}`);
    for (const reference of [body.snapshotID, "foo", "default/foo"]) {
      const made = await api().call("POST", "/v2/sandboxes", { body: { templateID: reference, envVars: { X: "1" } } });
      expect(made.status).toBe(201);
      expect(Value.Errors(SandboxSchema, made.body)).toEqual([]);
      expect(made.body).toMatchObject({ alias: "foo" });
      expect(made.body.envdAccessToken).not.toBe(source.body.envdAccessToken);
      const { spec } = api().node.held.get(made.body.sandboxID) ?? {};
      expect(spec).toMatchObject({ envVars: { X: "1" }, memoryMb: 512, layers: [] });
      const detail = (await api().call("GET", `/sandboxes/${made.body.sandboxID}`)).body;
      expect(detail).not.toHaveProperty("metadata");
      expect(detail).toMatchObject({ cpuCount: 2, memoryMB: 512 });
    }
    // A sandbox created from a snapshot uses its own token in its snapshots and pauses.
    const [made = ""] = [...api().node.held.keys()];
    const again = await take(made);
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: again.body.snapshotID } })).status).toBe(201);
    await api().call("POST", `/sandboxes/${made}/pause`);
    expect((await api().call("POST", `/v2/sandboxes/${made}/connect`)).status).toBe(201);
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: "default/foo" }, key: api().otherKey })).status).toBe(404);
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: "foo:v9" } })).status).toBe(404);
  });

  it("say that memory was lost to whoever starts from them", async () => {
    const { body } = await take(await api().create());
    api().node.memoryLostReason = "another processor";
    const made = await api().call("POST", "/v2/sandboxes", { body: { templateID: body.snapshotID } });
    expect(made).toMatchObject({ status: 201, headers: { "skerry-memory-lost": "another processor" } });
    const events = await api().store.sandboxes.listEvents(made.body.sandboxID);
    expect(events.at(-1)).toMatchObject({ event: "started", reason: "memory_lost: another processor" });
  });

  it("may be of the disk alone", async () => {
    const { body } = await take(await api().create(), { memory: false });
    const [image] = [...api().node.images.values()];
    expect(image?.hasMemory).toBe(false);
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: body.snapshotID } })).status).toBe(201);
  });

  it("are refused by name, by state, and one at a time", async () => {
    const id = await api().create();
    for (const [name, message] of [
      ["a b", /^Invalid name: /],
      ["", /^Invalid name: /],
      ["a:b:c", /^Invalid name: /],
      ["a/b/c", /^Invalid name: /],
      ["x".repeat(129), /^Invalid name: /],
      [`a:${crypto.randomUUID()}`, /^Invalid name: /],
      ["other/foo", /^namespace 'other' must match your team 'default'$/],
    ] as const) {
      expect((await take(id, { name })).body).toEqual({ code: 400, message: expect.stringMatching(message) });
    }
    expect((await api().call("POST", `/sandboxes/${id}/snapshots`)).body.message).toMatch(/^validation error/);
    expect((await take("iunknown")).status).toBe(404);
    expect((await take(id, {}, { key: api().otherKey })).status).toBe(404);
    await api().store.templates.putTemplate({ id: "tplmine", teamId: api().teamId, isPublic: false, now: 1 });
    await api().store.templates.putAlias({ namespace: "default", alias: "mine", templateId: "tplmine", now: 1 });
    for (const name of ["mine", "tplmine"]) {
      expect((await take(id, { name })).body).toEqual({ code: 409, message: `Alias '${name}' is already used` });
    }
    expect(api().node.countCalls("snapshot")).toBe(0);
    api().node.snapshot = "hang";
    const first = take(id);
    await waitUntil("the node was asked", () => api().node.countCalls("snapshot") === 1);
    const second = await take(id);
    expect(second.body).toEqual({ code: 409, message: `Sandbox '${id}' cannot be snapshotted while in 'snapshotting' state` });
    expect((await api().call("POST", `/sandboxes/${id}/fork`)).body).toEqual({
      code: 409,
      message: `Sandbox '${id}' cannot be forked while in 'snapshotting' state`,
    });
    api().node.snapshot = "ok";
    api().node.release();
    expect((await first).status).toBe(201);
  });

  it("leave nothing when they fail, and the sandbox as it was", async () => {
    const id = await api().create();
    for (const [failure, status, shouldRetry] of [
      [Code.Unavailable, 503, "true"],
      [Code.ResourceExhausted, 503, "true"],
      [Code.Internal, 500, "false"],
    ] as const) {
      api().node.snapshot = failure;
      const answer = await take(id, { name: "foo" });
      expect(answer.body.code).toBe(status);
      expect(answer.headers["should-retry"]).toBe(shouldRetry);
      expect(answer.text).not.toContain("secret");
      expect(await stateOf(id)).toBe("running");
    }
    api().node.snapshot = "ok";
    api().node.lost.set("snapshot", Code.Internal);
    expect((await take(id)).status).toBe(500);
    await waitUntil("its image is gone", () => api().node.images.size === 0);
    expect(ids(await list())).toEqual([]);
    expect(await api().store.images.listUnsettled("creating", 9)).toEqual([]);
  });

  it("are listed newest first, in pages, by sandbox and by name", async () => {
    const [one, two] = [await api().create(), await api().create()];
    const first = (await take(one)).body.snapshotID;
    await take(one, { name: "foo" });
    await take(two, { name: "foo:v2" });
    const last = (await take(two)).body.snapshotID;
    expect(ids(await list())).toEqual([last, "default/foo:v2", first]);
    expect((await list()).headers).not.toHaveProperty("x-next-token");
    const page = await list("?limit=2");
    expect(ids(page)).toEqual([last, "default/foo:v2"]);
    expect(ids(await list(`?limit=2&nextToken=${page.headers["x-next-token"]}`))).toEqual([first]);
    expect(ids(await list(`?sandboxID=${one}`))).toEqual(["default/foo:v2", first]);
    expect(ids(await list("?sandboxID=iunknown"))).toEqual([]);
    expect(ids(await list("?name=foo"))).toEqual(["default/foo:v2"]);
    expect(ids(await list("?name=default/foo:default"))).toEqual(["default/foo:default"]);
    expect(ids(await list(`?name=${first}`))).toEqual([first]);
    expect(ids(await list("?name=foo:v9"))).toEqual([]);
    expect(ids(await list("?name=base"))).toEqual([]);
    expect(ids(await list("?name=nope"))).toEqual([]);
    expect(ids(await list("", { key: api().otherKey }))).toEqual([]);
    for (const bad of ["?limit=0", "?limit=101", "?nextToken=x"]) expect((await list(bad)).status).toBe(400);
    const templates = await api().call("GET", "/templates");
    expect(templates.body).toHaveLength(1);
  });

  it("are deleted with all their builds, but not under those who use them", async () => {
    const id = await api().create();
    await take(id, { name: "foo" });
    await take(id, { name: "foo:v2" });
    const unnamed = (await take(id)).body.snapshotID;
    expect((await remove(unnamed, { key: api().otherKey })).status).toBe(403);
    expect((await remove("default/foo", { key: api().otherKey })).body).toEqual({ code: 404, message: "template 'default/foo' not found" });
    await api().call("PATCH", "/v2/templates/foo", { body: { public: true } });
    expect((await remove("default/foo", { key: api().otherKey })).body).toEqual({
      code: 403,
      message: "You don't have access to template 'default/foo'",
    });
    expect((await remove("nope")).body).toEqual({ code: 404, message: "template 'nope' not found" });
    expect((await remove(unnamed)).status).toBe(204);
    expect((await remove(unnamed)).status).toBe(404);
    const made = await api().create({ templateID: "foo" });
    expect((await remove("default/foo:v2")).body).toEqual({
      code: 400,
      message: "cannot delete template 'default/foo' because there are running sandboxes using it",
    });
    await api().call("POST", `/sandboxes/${made}/pause`);
    expect((await remove("foo")).body).toEqual({
      code: 400,
      message: "cannot delete template 'foo' because there are paused sandboxes using it",
    });
    await api().call("DELETE", `/sandboxes/${made}`);
    expect((await remove("default/foo:v2")).status).toBe(204);
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: "foo" } })).status).toBe(404);
    expect(ids(await list())).toEqual([]);
    await waitUntil("their images are gone", () => api().node.images.size === 0);
    expect((await take(id, { name: "foo" })).status).toBe(201);
  });

  it("that their node has lost are refused for good", async () => {
    const { body } = await take(await api().create());
    api().node.images.clear();
    const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: body.snapshotID } });
    expect(answer.body).toMatchObject({ code: 500, error_code: "sandbox_create_refused" });
    expect(answer.headers["should-retry"]).toBe("false");
  });

  it("are deleted by users too, as are templates", async () => {
    const asUser = { key: null, headers: { Authorization: `Bearer ${api().accessToken}` } };
    await take(await api().create(), { name: "foo" });
    expect((await remove("foo", asUser)).status).toBe(204);
    expect((await remove("base", asUser)).body.message).toMatch(/running sandboxes/);
  });
});

describeOnEachDatabase("snapshots on several nodes", { inSample: "postgres", nodes: 3 }, (api) => {
  it("start where they are, whichever node is emptier", async () => {
    const id = await api().create();
    const node = api().nodes.find((candidate) => candidate.held.has(id));
    const snapshot = await api().call("POST", `/sandboxes/${id}/snapshots`, { body: {} });
    for (let i = 0; i < 3; i += 1) await api().create({ templateID: snapshot.body.snapshotID });
    expect(node?.held.size).toBe(4);
    await api().call("POST", `/sandboxes/${id}/pause`);
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(201);
    expect(node?.held.has(id)).toBe(true);
  });
});
