import { randomUUID } from "node:crypto";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { TemplateSchema, TemplateWithBuildsSchema } from "../src/http/template-schemas.ts";
import { addTemplate, type TemplateSetup } from "./add-template.ts";
import type { CallOptions } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const NIL = "00000000-0000-0000-0000-000000000000";

describeOnEachDatabase("templates", { inSample: "both" }, (api) => {
  const get = async (path: string, options: CallOptions = {}) => await api().call("GET", path, options);
  const add = async (setup: TemplateSetup) => await addTemplate(api(), setup);
  const publish = (reference: string, options: CallOptions = {}, version = "/v2") =>
    api().call("PATCH", `${version}/templates/${encodeURIComponent(reference)}`, { body: { public: true }, ...options });
  const asUser = { get: () => ({ key: null, headers: { Authorization: `Bearer ${api().accessToken}` } }) };
  const ids = (answer: { body: { templateID: string }[] }) => answer.body.map(({ templateID }) => templateID);

  it("are listed in pages, newest first, and in one answer, oldest first", async () => {
    const made = [api().templateId];
    for (let i = 0; i < 5; i += 1) made.push((await add({ alias: `t${i}` })).id);
    await add({ team: "other", alias: "theirs" });
    const seen: string[] = [];
    let token: unknown = "";
    for (let pages = 0; token !== undefined && pages < 9; pages += 1) {
      const page = await get(`/v2/templates?limit=2${token ? `&nextToken=${token}` : ""}`);
      expect(page.status).toBe(200);
      for (const template of page.body) expect(Value.Errors(TemplateSchema, template)).toEqual([]);
      seen.push(...ids(page));
      token = page.headers["x-next-token"];
    }
    expect(seen.toSorted()).toEqual(made.toSorted());
    expect(new Set(seen).size).toBe(6);
    const all = await get("/v2/templates");
    expect(ids(all)).toEqual(seen);
    expect(all.headers).not.toHaveProperty("x-next-token");
    const times = all.body.map(({ createdAt }: { createdAt: string }) => createdAt);
    expect(times).toEqual(times.toSorted().reverse());
    expect(ids(await get("/templates")).toSorted()).toEqual(made.toSorted());
    expect(ids(await get("/v2/templates", asUser.get()))).toEqual(seen);
    expect(ids(await get(`/v2/templates?teamID=${api().teamId}`, asUser.get()))).toEqual(seen);
    expect(
      ids(await get("/v2/templates", { key: null, headers: { "X-Admin-Token": api().adminToken, "X-Team-ID": api().teamId } })),
    ).toEqual(seen);
    expect((await get(`/v2/templates?teamID=${randomUUID()}`)).body).toEqual({
      code: 400,
      message: "Team ID param mismatch with the API key",
    });
    expect((await get(`/v2/templates?teamID=${randomUUID()}`, asUser.get())).status).toBe(403);
    const bad = ["limit=0", "limit=101", "limit=x", "nextToken=x", "nextToken=", "teamID=prj_1"];
    const full = Buffer.from(`${new Date().toISOString()}__x__asc`).toString("base64url");
    for (const query of [...bad, `nextToken=${full}`]) expect([query, (await get(`/v2/templates?${query}`)).status]).toEqual([query, 400]);
    expect((await get("/v2/templates?nextToken=x")).body).toEqual({ code: 400, message: "Invalid next token" });
    expect((await get("/v2/templates", { key: null })).status).toBe(401);
  });

  it("say what they serve, how large it is, and what became of the latest build", async () => {
    const { id, builds } = await add({ alias: "web", builds: [{ cpuCount: 4 }, { status: "error", cpuCount: 8 }, { status: "waiting" }] });
    const shown = async (templateId: string) =>
      (await get("/v2/templates")).body.find(({ templateID }: { templateID: string }) => templateID === templateId);
    expect(await shown(id)).toMatchObject({
      buildID: builds[0]?.id,
      cpuCount: 4,
      buildStatus: "waiting",
      buildCount: 3,
      names: ["default/web"],
      aliases: ["web"],
      public: false,
      createdBy: null,
      lastSpawnedAt: null,
      spawnCount: 0,
      isDefault: false,
      envdVersion: "0.6.4",
    });
    expect(await shown(id)).not.toHaveProperty("description");
    const failed = await add({ alias: "failed", builds: [{ status: "error", cpuCount: 8 }] });
    expect(await shown(failed.id)).toMatchObject({ buildID: NIL, cpuCount: 8, buildStatus: "error", envdVersion: "" });
    const tagged = await add({ alias: "tagged", builds: [{ cpuCount: 2, tag: "v1" }] });
    expect(await shown(tagged.id)).toMatchObject({ buildID: NIL, cpuCount: 2, buildStatus: "waiting", buildCount: 1 });
  });

  it("count the sandboxes that were created from them, and not those that were resumed", async () => {
    const before = Date.now();
    const id = await api().create();
    expect((await api().call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(201);
    expect((await api().call("POST", `/sandboxes/${id}/fork`, { body: { count: 2 } })).status).toBe(201);
    const { body } = await get(`/templates/${api().templateId}`);
    expect(body.spawnCount).toBe(3);
    expect(Date.parse(body.lastSpawnedAt)).toBeGreaterThanOrEqual(before);
  });

  it("are read with their builds in pages", async () => {
    const { id, builds } = await add({ alias: "web", builds: [{}, { tag: "v1" }, { status: "building" }, { status: "error" }] });
    const first = await get(`/templates/${id}?limit=3`);
    expect(first.status).toBe(200);
    expect(Value.Errors(TemplateWithBuildsSchema, first.body)).toEqual([]);
    expect(first.body).toMatchObject({
      templateID: id,
      buildID: builds[0]?.id,
      names: ["default/web"],
      buildCount: 4,
      buildStatus: "error",
    });
    const second = await get(`/templates/${id}?limit=3&nextToken=${first.headers["x-next-token"]}`);
    expect(second.headers).not.toHaveProperty("x-next-token");
    const listed = [...first.body.builds, ...second.body.builds];
    expect(listed.map(({ buildID }) => buildID)).toEqual(builds.map((build) => build.id).reverse());
    expect(listed.map(({ status }) => status)).toEqual(["error", "building", "ready", "ready"]);
    expect(listed[1]).not.toHaveProperty("finishedAt");
    expect(listed[1]).not.toHaveProperty("envdVersion");
    expect(listed[3]).toMatchObject({ diskSizeMB: 0, envdVersion: "0.6.4", finishedAt: expect.any(String) });
    expect((await get(`/templates/${id}`, { key: api().otherKey })).body).toEqual({
      code: 403,
      message: `You don't have access to template '${id}'`,
    });
    for (const unknown of ["web", "nope", "a b", "%00", "default%2Fweb", "x".repeat(65)]) {
      const answer = await get(`/templates/${unknown}`);
      expect(answer.body).toEqual({ code: 404, message: `Template ${decodeURIComponent(unknown)} not found` });
    }
    for (const query of ["limit=0", "limit=101", "nextToken=x"]) expect((await get(`/templates/${id}?${query}`)).status).toBe(400);
    expect((await get(`/templates/${id}`, asUser.get())).status).toBe(401);
  });

  it("that came with the platform are listed for all who may use them, and how others use them is not shown", async () => {
    const { id } = await add({ alias: "desk", isDefault: true, description: "A desktop" });
    await api().store.templates.putTemplate({ id: api().templateId, teamId: api().teamId, isPublic: true, isDefault: true, now: 1 });
    await api().create();
    const own = await get("/default-templates", asUser.get());
    expect(ids(own)).toEqual([id, api().templateId].toSorted());
    expect(own.body.find(({ templateID }: { templateID: string }) => templateID === id)).toMatchObject({
      isDefault: true,
      description: "A desktop",
    });
    const foreign = await get("/default-templates", { key: api().otherKey });
    expect(ids(foreign)).toEqual([api().templateId]);
    for (const template of foreign.body) {
      expect(Value.Errors(TemplateSchema, template)).toEqual([]);
      expect(template).toMatchObject({ spawnCount: 0, buildCount: 0, lastSpawnedAt: null, createdBy: null });
    }
    expect(own.body.find(({ templateID }: { templateID: string }) => templateID === api().templateId).spawnCount).toBe(1);
  });

  it("are published under their name with the namespace, and made private again", async () => {
    const { id } = await add({ alias: "web" });
    const start = (templateID: string) => api().call("POST", "/v2/sandboxes", { body: { templateID }, key: api().otherKey });
    expect((await start("default/web")).body).toEqual({ code: 404, message: "template 'default/web' not found" });
    expect(await publish("web")).toMatchObject({ status: 200, body: { names: ["default/web"] } });
    expect((await start("default/web")).status).toBe(201);
    expect((await start(id)).status).toBe(201);
    expect((await start("web")).status).toBe(404);
    const change = (body?: unknown, options: CallOptions = {}) =>
      api().call("PATCH", `/v2/templates/${id}`, { ...(body === undefined ? {} : { body }), ...options });
    for (const nothing of [undefined, {}]) expect((await change(nothing)).body).toEqual({ names: ["default/web"] });
    expect((await get(`/templates/${id}`)).body.public).toBe(true);
    expect((await change({ public: false }, asUser.get())).body).toEqual({ names: ["default/web"] });
    expect((await start("default/web")).status).toBe(404);
    for (const bad of [{ public: "yes" }, { public: null }, { public: 1 }, []]) {
      expect((await change(bad)).body).toEqual({ code: 400, message: expect.stringMatching(/^validation error/) });
    }
    expect((await change({ public: true }, { key: api().otherKey })).status).toBe(403);
    expect((await publish("nope")).body).toEqual({ code: 404, message: "template 'nope' not found" });
    // Whoever guesses a name learns nothing; an id cannot be guessed, and a public template is no secret.
    for (const name of ["web", "default/web"]) expect((await publish(name, { key: api().otherKey })).status).toBe(404);
    await change({ public: true });
    expect((await publish("default/web", { key: api().otherKey })).status).toBe(403);
    expect((await publish("a b")).status).toBe(400);
    expect((await publish("web", { key: null })).status).toBe(401);
  });

  it("get their bare name from older clients, one of two teams that ask at once", async () => {
    const mine = await add({ alias: "web" });
    const theirs = await add({ team: "other", alias: "web" });
    const answers = await Promise.all([publish("web", {}, ""), publish("web", { key: api().otherKey }, "")]);
    const [winner, loser] = answers[0].status === 200 ? [mine, theirs] : [theirs, mine];
    const slug = loser === mine ? "default" : "other";
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect(answers.find(({ status }) => status === 200)?.body).toEqual({});
    const message = `Public template name 'web' is already taken. Your template is available at '${slug}/web'.`;
    expect(answers.find(({ status }) => status === 409)?.body).toEqual({ code: 409, message: expect.stringContaining(message) });
    expect((await api().store.templates.findTemplate(loser.id))?.isPublic).toBe(false);
    expect((await api().store.templates.findAlias({ namespace: "", alias: "web" }))?.id).toBe(winner.id);
    const key = winner === mine ? api().apiKey : api().otherKey;
    expect((await publish("web", { key }, "")).status).toBe(200);
    const found = (await get("/v2/templates", { key })).body.find(({ templateID }: { templateID: string }) => templateID === winner.id);
    expect(found).toMatchObject({ aliases: ["web"], names: [expect.stringContaining("/web"), "web"] });
    // The newer form needs no bare name, and making the template private frees it.
    const loserKey = winner === mine ? api().otherKey : api().apiKey;
    expect((await publish("web", { key: loserKey })).status).toBe(200);
    await api().call("PATCH", `/templates/${winner.id}`, { body: { public: false }, key });
    expect((await publish("web", { key: loserKey }, "")).status).toBe(200);
    expect((await api().store.templates.findAlias({ namespace: "", alias: "web" }))?.id).toBe(loser.id);
  });

  it("that came with the platform keep their names when they are made private", async () => {
    await api().call("PATCH", `/v2/templates/base`, { body: { public: false } });
    expect((await get("/templates/aliases/base")).body).toEqual({ templateID: api().templateId, public: false });
  });

  it("are looked up by name", async () => {
    const { id } = await add({ alias: "web", builds: [{ tag: "v1" }, { tag: "v2", status: "building" }] });
    await add({ alias: "unbuilt", builds: [] });
    const look = (name: string, options: CallOptions = {}) => get(`/templates/aliases/${encodeURIComponent(name)}`, options);
    for (const name of ["web", "Web", "default/web", "web:v1", "default/web:v1"]) {
      expect(await look(name), name).toMatchObject({ status: 200, body: { templateID: id, public: false } });
    }
    expect((await look("unbuilt")).status).toBe(200);
    for (const name of ["nope", "default/nope", "web:v2", "web:v9", id, "default/base"])
      expect([name, (await look(name)).status]).toEqual([name, 404]);
    const theirs = { key: api().otherKey };
    expect((await look("base", theirs)).body).toEqual({ code: 403, message: "You don't have access to this template alias" });
    expect((await look("base:nope", theirs)).status).toBe(403);
    expect((await look("web", theirs)).status).toBe(404);
    expect((await look("default/web", theirs)).body).toEqual({ code: 400, message: "namespace 'default' must match your team 'other'" });
    for (const bad of ["a b", ":x", "web:", "a/b/c", "\0", "ä"]) expect([bad, (await look(bad)).status]).toEqual([bad, 400]);
    expect((await look("web", asUser.get())).status).toBe(401);
  });

  it("that were deleted are gone from everything, and their names are free", async () => {
    const { id } = await add({ alias: "web", builds: [{}, { status: "waiting", tag: "v1" }] });
    await publish("web", {}, "");
    expect((await api().call("DELETE", "/templates/default%2Fweb")).status).toBe(204);
    expect((await get(`/templates/${id}`)).body).toEqual({ code: 404, message: `Template ${id} not found` });
    for (const path of [`/templates/${id}/tags`, "/templates/aliases/web", "/templates/web/tags/count"]) {
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    }
    expect((await publish(id)).status).toBe(404);
    expect(ids(await get("/v2/templates"))).toEqual([api().templateId]);
    expect((await api().call("POST", "/templates/tags", { body: { target: id, tags: ["v1"] } })).status).toBe(404);
    const again = await api().call("POST", "/v3/templates", { body: { name: "web" } });
    expect(again).toMatchObject({ status: 202, body: { names: ["default/web"], public: false } });
    expect(again.body.templateID).not.toBe(id);
    expect((await api().call("POST", "/v3/templates", { body: { name: id } })).body).toEqual({
      code: 409,
      message: `Alias '${id}' is already used`,
    });
    // The other team may have a template of this name too.
    expect((await api().call("POST", "/v3/templates", { body: { name: "web" }, key: api().otherKey })).body.names).toEqual(["other/web"]);
  });
});
