import { randomUUID } from "node:crypto";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { AssignmentSchema, TemplateTagSchema } from "../src/http/template-schemas.ts";
import { addTemplate } from "./add-template.ts";
import type { CallOptions } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("tags", { inSample: "both" }, (api) => {
  const get = async (path: string, options: CallOptions = {}) => await api().call("GET", path, options);
  const assign = (target: unknown, tags: unknown, options: CallOptions = {}) =>
    api().call("POST", "/templates/tags", { body: { target, tags }, ...options });
  const remove = (name: unknown, tags: unknown, options: CallOptions = {}) =>
    api().call("DELETE", "/templates/tags", { body: { name, tags }, ...options });
  const list = (reference: string, options: CallOptions = {}) => get(`/templates/${encodeURIComponent(reference)}/tags`, options);
  /** The build that a new sandbox of the reference has, or the failure. */
  const started = async (reference: string) => {
    const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: reference } });
    return answer.status === 201 ? (await api().store.sandboxes.find(answer.body.sandboxID))?.buildId : answer.body;
  };

  it("are given to the build of a tag or of an id, and move to another one", async () => {
    const { id, builds } = await addTemplate(api(), { alias: "web", builds: [{}, { tag: "v1" }] });
    const [first = { id: "" }, second = { id: "" }] = builds;
    expect(await assign("web", ["Latest", "latest", " stable "])).toMatchObject({
      status: 201,
      body: { buildID: first.id, tags: ["latest", "stable"] },
    });
    expect((await assign("default/web:v1", ["latest"])).body).toEqual({ buildID: second.id, tags: ["latest"] });
    expect((await assign(`web:${second.id}`, ["by-id"])).body).toEqual({ buildID: second.id, tags: ["by-id"] });
    expect((await assign("web:by-id", ["chained"])).body).toEqual({ buildID: second.id, tags: ["chained"] });
    expect((await assign(id, ["default"])).body).toEqual({ buildID: first.id, tags: ["default"] });
    const listed = await list("web");
    for (const tag of listed.body) expect(Value.Errors(TemplateTagSchema, tag)).toEqual([]);
    const tagsOf = (build: { id: string }) =>
      listed.body.filter(({ buildID }: { buildID: string }) => buildID === build.id).map(({ tag }: { tag: string }) => tag);
    expect(tagsOf(first)).toEqual(["default", "stable"]);
    expect(tagsOf(second)).toEqual(["by-id", "chained", "latest", "v1"]);
    expect((await list(id)).body).toEqual(listed.body);
    expect((await list("default/web:v1")).body).toEqual(listed.body);
    for (const [reference, build] of [
      ["web", first],
      ["web:default", first],
      ["web:latest", second],
      [`${id}:stable`, first],
      [`default/web:${first.id}`, first],
      [`web:${second.id}`, second],
    ] as const) {
      expect([reference, await started(reference)]).toEqual([reference, build.id]);
    }
    expect(await started("web:nope")).toEqual({ code: 404, message: "tag 'nope' does not exist for template 'web'" });
    const foreign = await addTemplate(api(), { alias: "x" });
    expect(await started(`web:${foreign.builds[0]?.id}`)).toMatchObject({ code: 404 });
  });

  it("serve the former build until a newer one is ready", async () => {
    const first = await api().call("POST", "/v3/templates", { body: { name: "web", tags: ["v1"] } });
    const start = (body: { templateID: string; buildID: string }) =>
      api().call("POST", `/v2/templates/${body.templateID}/builds/${body.buildID}`, { body: { fromImage: "debian" } });
    expect(await started("web:v1")).toMatchObject({ code: 404, message: "tag 'v1' does not exist for template 'web'" });
    expect((await assign("web:v1", ["v2"])).body).toEqual({ code: 404, message: "Template 'web' with tag 'v1' not found" });
    expect((await assign(`web:${first.body.buildID}`, ["v2"])).status).toBe(404);
    expect((await start(first.body)).status).toBe(202);
    const isServed = (build: string) => async () => (await started("web:v1")) === build;
    await waitUntil("the first build is served", isServed(first.body.buildID));
    const second = await api().call("POST", "/v3/templates", { body: { name: "web:v1" } });
    expect(second.body.templateID).toBe(first.body.templateID);
    expect((await list("web")).body).toMatchObject([{ tag: "v1", buildID: second.body.buildID }]);
    expect(await started("web:v1")).toBe(first.body.buildID);
    expect(await started(`web:${second.body.buildID}`)).toMatchObject({ code: 404 });
    // What is assigned now is newer than the build that waits, and is served when that one is ready, too.
    expect((await assign("web:v1", ["v1"])).body.buildID).toBe(first.body.buildID);
    expect((await start(second.body)).status).toBe(202);
    await waitUntil("the second build is ready", async () => (await started(`web:${second.body.buildID}`)) === second.body.buildID);
    expect(await started("web:v1")).toBe(first.body.buildID);
  });

  it("are refused when they are none, or their template is missing or foreign", async () => {
    const { id, builds } = await addTemplate(api(), { alias: "web" });
    const theirs = await addTemplate(api(), { alias: "theirs", team: "other" });
    const invalid: [unknown, unknown, RegExp][] = [
      ["web", [], /^At least one tag is required$/],
      ["web", [""], /^Invalid tag: /],
      ["web", [":x"], /^Invalid tag: /],
      ["web", ["n:"], /^Invalid tag: /],
      ["web", ["ok", randomUUID()], /^Invalid tag: /],
      ["web", [randomUUID().toUpperCase()], /^Invalid tag: /],
      ["web", ["a\0"], /^Invalid tag: /],
      ["web", [1], /^validation error/],
      ["web", "v1", /^validation error/],
      ["web", null, /^validation error/],
      ["web", Array.from({ length: 101 }, (_, i) => `v${i}`), /^validation error/],
      ["web:", ["v1"], /^Invalid template reference: /],
      [":v1", ["v1"], /^Invalid template reference: /],
      ["", ["v1"], /^Invalid template reference: /],
      [1, ["v1"], /^validation error/],
      [undefined, ["v1"], /^validation error/],
      ["other/theirs", ["v1"], /^namespace 'other' must match your team 'default'$/],
    ];
    for (const [target, tags, message] of invalid) {
      expect((await assign(target, tags)).body, String(message)).toEqual({ code: 400, message: expect.stringMatching(message) });
    }
    for (const target of ["web:nope", `web:${randomUUID()}`, `web:${theirs.builds[0]?.id}`, "nope"]) {
      const [name, tag = "default"] = target.split(":");
      expect((await assign(target, ["v1"])).body).toEqual({ code: 404, message: `Template '${name}' with tag '${tag}' not found` });
    }
    for (const target of [theirs.id, `${theirs.id}:nope`]) expect((await assign(target, ["v1"])).status).toBe(403);
    expect((await assign("base", ["v1"], { key: api().otherKey })).status).toBe(403);
    expect((await assign("web", ["v1"], { key: null })).status).toBe(401);
    expect((await api().call("POST", "/templates/tags")).body.message).toMatch(/^validation error/);
    expect((await list(id, { key: api().otherKey })).status).toBe(403);
    expect((await list("nope")).body).toEqual({ code: 404, message: "template 'nope' not found" });
    for (const bad of ["a b", "\0", "a:b:c"]) expect((await list(bad)).status).toBe(400);
    expect((await list("web")).body).toMatchObject([{ tag: "default", buildID: builds[0]?.id }]);
  });

  it("are removed, again and again, except the default one", async () => {
    const { id, builds } = await addTemplate(api(), { alias: "web", builds: [{}, { tag: "v1" }, { tag: "v1" }] });
    expect(await remove("web", ["V1", "nope"])).toMatchObject({ status: 204, text: "" });
    expect((await remove("default/web", ["v1"])).status).toBe(204);
    expect(await started("web:v1")).toMatchObject({ code: 404 });
    expect(await started(`web:${builds[2]?.id}`)).toBe(builds[2]?.id);
    expect((await list("web")).body).toMatchObject([{ tag: "default" }]);
    expect((await assign(`web:${builds[1]?.id}`, ["v1"])).status).toBe(201);
    expect(await started("web:v1")).toBe(builds[1]?.id);
    for (const [name, tags, message] of [
      ["web", ["v1", "Default"], /^Cannot delete the 'default' tag$/],
      ["web", [], /^At least one tag is required$/],
      ["web", ["a b"], /^Invalid tag: /],
      ["web:v1", ["v1"], /^Invalid name: /],
      ["web:", ["v1"], /^Invalid name: /],
      ["a b", ["v1"], /^Invalid template reference: /],
      ["other/web", ["v1"], /^namespace 'other' must match/],
      [1, ["v1"], /^validation error/],
      ["web", "v1", /^validation error/],
    ] as const) {
      expect((await remove(name, tags)).body).toEqual({ code: 400, message: expect.stringMatching(message) });
    }
    expect((await api().call("DELETE", "/templates/tags")).status).toBe(400);
    expect((await remove("nope", ["v1"])).status).toBe(404);
    expect((await remove(id, ["v1"], { key: api().otherKey })).status).toBe(403);
    expect((await list("web")).body).toHaveLength(2);
  });

  it("that several assign at once belong to one of them, and each assignment is kept", async () => {
    const { id, builds } = await addTemplate(api(), { alias: "web", builds: Array.from({ length: 6 }, () => ({})) });
    const answers = await Promise.all(builds.map((build) => assign(`web:${build.id}`, ["v1", "v2"])));
    expect(answers.map(({ status }) => status)).toEqual(builds.map(() => 201));
    const { body } = await get(`/templates/${id}/tags/v1/assignments`);
    expect(body.data.map(({ buildId }: { buildId: string }) => buildId).toSorted()).toEqual(builds.map((build) => build.id).toSorted());
    expect(await started("web:v1")).toBe(body.data[0].buildId);
    // Both tags were assigned together each time.
    expect(await started("web:v2")).toBe(body.data[0].buildId);
  });

  it("are counted and found when they have a ready build", async () => {
    const { id } = await addTemplate(api(), { alias: "web", builds: [{}, { tag: "v1" }, { tag: "v2", status: "building" }] });
    const theirs = { key: api().otherKey };
    expect((await get(`/templates/${id}/tags/count`)).body).toEqual({ total: 2 });
    expect((await get("/templates/default%2Fweb/tags/count")).body).toEqual({ total: 2 });
    for (const [tag, exists, normalizedTag] of [
      ["V1", true, "v1"],
      ["%20v1%20", true, "v1"],
      ["v2", false, "v2"],
      [randomUUID(), false, expect.any(String)],
    ]) {
      expect((await get(`/templates/${id}/tags/exists?tag=${tag}`)).body).toEqual({ exists, normalizedTag });
    }
    for (const query of ["", "?tag=", "?tag=a%20b", "?tag=%00", "?tag=a&tag=b"]) {
      expect([query, (await get(`/templates/${id}/tags/exists${query}`)).status]).toEqual([query, 400]);
    }
    for (const path of ["count", "exists?tag=v1", "groups", "v1/assignments"]) {
      expect((await get(`/templates/${id}/tags/${path}`, theirs)).body).toEqual({ code: 404, message: `template '${id}' not found` });
      expect((await get(`/templates/nope/tags/${path}`)).status).toBe(404);
      expect((await get(`/templates/a%20b/tags/${path}`)).status).toBe(400);
      expect((await get(`/templates/${id}/tags/${path}`, { key: null })).status).toBe(401);
    }
    await api().call("PATCH", `/v2/templates/${id}`, { body: { public: true } });
    expect((await get(`/templates/${id}/tags/count`, theirs)).status).toBe(404);
  });

  it("are grouped with their latest assignments, in pages of every order", async () => {
    const { id, builds } = await addTemplate(api(), { alias: "web", builds: [{}, {}, { status: "building", tag: "c" }] });
    for (const tag of ["b", "a_1", "c.2"]) for (const build of builds.slice(0, 2)) await assign(`web:${build.id}`, [tag]);
    const tagsOf = (body: { tags: { tag: string }[] }) => body.tags.map(({ tag }) => tag);
    const groups = async (query: string) => (await get(`/templates/${id}/tags/groups?${query}`)).body;
    const all = await groups("assignmentLimit=1");
    expect(all.nextCursor).toBeNull();
    expect(tagsOf(all).toSorted()).toEqual(["a_1", "b", "c.2", "default"]);
    for (const { assignments, hasMore } of all.tags) {
      expect([assignments.length, hasMore, assignments[0].buildId]).toEqual([1, true, builds[1]?.id]);
      expect(Value.Errors(AssignmentSchema, assignments[0])).toEqual([]);
    }
    expect((await groups("")).tags[0]).toMatchObject({
      assignments: [{ buildId: builds[1]?.id }, { buildId: builds[0]?.id }],
      hasMore: false,
    });
    const orders = { name_asc: ["a_1", "b", "c.2", "default"], name_desc: ["default", "c.2", "b", "a_1"] };
    for (const sort of ["name_asc", "name_desc", "latest_asc", "latest_desc"]) {
      const whole = tagsOf(await groups(`sort=${sort}`));
      const paged: string[] = [];
      let cursor: string | null = "";
      for (let pages = 0; cursor !== null && pages < 9; pages += 1) {
        const page = await groups(`sort=${sort}&tagsLimit=1${cursor ? `&tagsCursor=${cursor}` : ""}`);
        paged.push(...tagsOf(page));
        cursor = page.nextCursor;
      }
      expect(paged).toEqual(whole);
      if (sort in orders) expect(whole).toEqual(orders[sort as keyof typeof orders]);
      const { nextCursor } = await groups(`sort=${sort}&tagsLimit=1`);
      const other = sort === "name_asc" ? "name_desc" : "name_asc";
      expect(await groups(`sort=${other}&tagsCursor=${nextCursor}`)).toEqual({ code: 400, message: "Invalid cursor" });
    }
    expect(tagsOf(await groups("search=C.&sort=name_asc"))).toEqual(["c.2"]);
    expect(tagsOf(await groups("search=%25"))).toEqual([]);
    expect(tagsOf(await groups("search=%00"))).toEqual([]);
    for (const bad of [
      "sort=up",
      "tagsLimit=0",
      "tagsLimit=101",
      "assignmentLimit=0",
      "assignmentLimit=x",
      "tagsCursor=x",
      "tagsCursor=",
    ]) {
      expect([bad, (await groups(bad)).code]).toEqual([bad, 400]);
    }
  });

  it("have a history, newest first, in pages, whose entries keep their ids", async () => {
    const { id, builds } = await addTemplate(api(), { alias: "web", builds: [{}, {}, {}, { status: "error" }] });
    const page = async (query: string) => (await get(`/templates/${id}/tags/default/assignments?${query}`)).body;
    const whole = await page("");
    expect(whole.nextCursor).toBeNull();
    expect(whole.data.map(({ buildId }: { buildId: string }) => buildId)).toEqual(
      builds
        .slice(0, 3)
        .map((build) => build.id)
        .reverse(),
    );
    for (const assignment of whole.data) expect(Value.Errors(AssignmentSchema, assignment)).toEqual([]);
    expect(new Set(whole.data.map(({ assignmentId }: { assignmentId: string }) => assignmentId)).size).toBe(3);
    const first = await page("limit=2");
    const rest = await page(`limit=2&cursor=${first.nextCursor}`);
    expect([...first.data, ...rest.data]).toEqual(whole.data);
    expect(rest.nextCursor).toBeNull();
    expect((await get(`/templates/${id}/tags/nope/assignments`)).body).toEqual({ data: [], nextCursor: null });
    for (const bad of ["limit=0", "limit=101", "cursor=x", "cursor="]) expect([bad, (await page(bad)).code]).toEqual([bad, 400]);
    expect((await get(`/templates/${id}/tags/a%20b/assignments`)).status).toBe(400);
  });
});
