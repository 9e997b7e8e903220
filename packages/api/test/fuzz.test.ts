import { waitUntil } from "@skerry/testkit/wait-until";
import fc from "fast-check";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { ErrorSchema } from "../src/http/schemas.ts";
import { addTemplate } from "./add-template.ts";
import type { Answer } from "./api-harness.ts";
import { requestBuild } from "./build-calls.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const NAMES = ["templateID", "timeout", "metadata", "envVars", "autoPause", "network", "duration", "memory", "mcp", "iam", "volumeMounts"];
const odd = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("base", "\0", "\ud800", "__proto__", "base:default", "9e9", "-0", "null"),
);
const value = fc.oneof(
  odd,
  fc.integer(),
  fc.double(),
  fc.constantFrom(null, true, false, 2 ** 31, 2 ** 53, -1, 1e308),
  fc.dictionary(odd, fc.oneof(odd, fc.integer())),
  fc.array(odd),
  fc.jsonValue(),
);
const body = fc.oneof(
  fc.jsonValue(),
  fc.dictionary(fc.constantFrom(...NAMES), value).map((fields) => ({ templateID: "base", ...fields })),
  fc.record({ metadata: fc.dictionary(odd, odd), envVars: fc.dictionary(odd, odd) }).map((maps) => ({ templateID: "base", ...maps })),
);

/** Expects an answer that blames the caller and has the shape of every error. */
function expectOrderly(answer: Answer): void {
  if (answer.status < 400) return;
  if (answer.status >= 500) expect(answer.body).toMatchObject({ code: 501, message: expect.stringMatching(/is not built yet$/) });
  expect(answer.body.code).toBe(answer.status);
  expect(Value.Errors(ErrorSchema, answer.body)).toEqual([]);
}

describeOnEachDatabase("whatever is sent", { inSample: "sqlite" }, (api) => {
  it("in a body is answered in order", async () => {
    const id = await api().create({ timeout: 80_000 });
    const paths = ["/v2/sandboxes", "/sandboxes", `/sandboxes/${id}/connect`, `/v2/sandboxes/${id}/connect`, `/sandboxes/${id}/refreshes`];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), body, async (path, sent) => {
        expectOrderly(await api().call("POST", path, { body: sent }));
      }),
      { numRuns: 400 },
    );
    for (const listed of (await api().call("GET", "/v2/sandboxes")).body) {
      expect((await api().call("GET", `/sandboxes/${listed.sandboxID}`)).status).toBe(200);
    }
  });

  it("in a path or query is answered in order", async () => {
    await api().create({ metadata: { a: "b" } });
    const text = fc.oneof(odd, fc.constantFrom("%", "%00", "%25", "a=b", "a%3Db", "running,paused", "2026-01-01T00:00:00Z", "../..", "-"));
    const name = fc.constantFrom("metadata", "state", "order", "startedAfter", "template", "limit", "nextToken");
    const encoded = text.map((raw) => encodeURIComponent(raw.toWellFormed()));
    await fc.assert(
      fc.asyncProperty(
        encoded,
        fc.array(fc.tuple(name, fc.oneof(encoded, fc.constantFrom("%zz", "%ff", "+", "1", "100")))),
        async (id, pairs) => {
          const query = pairs.map(([key, raw]) => `${key}=${raw}`).join("&");
          expectOrderly(await api().call("GET", `/v2/sandboxes?${query}`));
          expectOrderly(await api().call("GET", `/sandboxes?${query}`));
          // The client removes path segments that consist of dots.
          if (!/^(\.|%2e)*$/i.test(id)) expectOrderly(await api().call("GET", `/sandboxes/${id}`));
        },
      ),
      { numRuns: 200 },
    );
  });

  it("about templates and tags is answered in order", async () => {
    const { id } = await addTemplate(api(), { alias: "web" });
    const text = fc.oneof(
      odd,
      fc.constantFrom("web", "default/web:default", "web:v1", id, "other/web", ":", "a/b/c", "V1", " v1 ", "100", "0"),
    );
    const encoded = text.map((raw) => encodeURIComponent(raw.toWellFormed())).filter((part) => !/^(\.|%2e)*$/i.test(part));
    const paths = ["", "/tags", "/tags/count", "/tags/exists", "/tags/groups", "/tags/v1/assignments", "/builds/x/status"];
    const query = fc.array(
      fc.tuple(fc.constantFrom("limit", "nextToken", "cursor", "tagsCursor", "search", "sort", "tag", "teamID", "tagsLimit"), encoded),
    );
    const bodies = fc.oneof(
      fc.record({ target: text, tags: fc.array(text) }),
      fc.record({ name: text, tags: fc.array(text) }),
      fc.record({ public: value }),
      fc.record({ name: value, tags: value, target: value }),
    );
    await fc.assert(
      fc.asyncProperty(encoded, encoded, fc.constantFrom(...paths), query, bodies, async (reference, tag, path, pairs, sent) => {
        const asked = pairs.map(([key, raw]) => `${key}=${raw}`).join("&");
        for (const place of [`/templates/${reference}${path}`, `/templates/aliases/${reference}`, "/v2/templates", "/templates"]) {
          expectOrderly(await api().call("GET", `${place}?${asked}`));
        }
        expectOrderly(await api().call("GET", `/templates/${id}/tags/${tag}/assignments?${asked}`));
        expectOrderly(await api().call("POST", "/templates/tags", { body: sent }));
        expectOrderly(await api().call("DELETE", "/templates/tags", { body: sent }));
        expectOrderly(await api().call("PATCH", `/v2/templates/${reference}`, { body: sent }));
      }),
      { numRuns: 60 },
    );
    const listed = await api().call("GET", `/templates/${id}`);
    expect(listed).toMatchObject({ status: 200, body: { names: ["default/web"] } });
  });

  it("about builds is answered in order, and every build that was started ends", async () => {
    const ids = await requestBuild(api(), "web");
    const text = fc.oneof(
      odd,
      fc.constantFrom("web", "web:v1", "COPY", "run", "a".repeat(64), "FROM a\nRUN b", "FROM a\nCOPY . /", "debian"),
    );
    const step = fc.oneof(
      value,
      fc.record({ type: text, args: fc.oneof(value, fc.array(text)), filesHash: text, force: value }, { requiredKeys: [] }),
    );
    const requests = fc.record(
      {
        name: fc.oneof(text, value),
        alias: text,
        tags: fc.oneof(value, fc.array(text)),
        cpuCount: value,
        memoryMB: value,
        dockerfile: text,
      },
      { requiredKeys: [] },
    );
    const starts = fc.record(
      {
        fromImage: fc.oneof(text, value),
        fromTemplate: text,
        fromImageRegistry: fc.oneof(
          value,
          fc.record({ type: fc.constantFrom("aws", "gcp", "registry"), username: value, password: value }),
        ),
        steps: fc.oneof(value, fc.array(step)),
        startCmd: fc.oneof(text, value),
        force: value,
      },
      { requiredKeys: [] },
    );
    const encoded = text.map((raw) => encodeURIComponent(raw.toWellFormed())).filter((part) => !/^(\.|%2e)*$/i.test(part));
    const names = fc.constantFrom("logsOffset", "limit", "level", "cursor", "direction", "source", "path", "expires", "token");
    const query = fc.array(fc.tuple(names, encoded)).map((pairs) => pairs.map(([key, raw]) => `${key}=${raw}`).join("&"));
    const token = { key: null, headers: { Authorization: `Bearer ${api().accessToken}` } };
    await fc.assert(
      fc.asyncProperty(requests, starts, encoded, query, async (request, start, word, asked) => {
        for (const path of ["/v3/templates", "/v2/templates"]) {
          const answer = await api().call("POST", path, { body: request });
          expectOrderly(answer);
          if (answer.status !== 202) continue;
          const { templateID, buildID } = answer.body;
          expectOrderly(await api().call("POST", `/v2/templates/${templateID}/builds/${buildID}`, { body: start }));
        }
        expectOrderly(await api().call("POST", "/templates", { body: request, ...token }));
        expectOrderly(await api().call("POST", `/v2/templates/${ids.templateID}/builds/${word}`, { body: start }));
        for (const path of [`builds/${ids.buildID}/status`, `builds/${ids.buildID}/logs`, `builds/${word}/logs`, `files/${word}`]) {
          expectOrderly(await api().call("GET", `/templates/${ids.templateID}/${path}?${asked}`));
        }
        expectOrderly(await api().call("GET", `/templates/${word}/files/${"a".repeat(64)}`));
        expectOrderly(await api().call("POST", `/templates/${word}`, { body: { dockerfile: "FROM a" }, ...token }));
        expectOrderly(await api().call("PUT", `/upload?${asked}`, { raw: "x" }));
      }),
      { numRuns: 40 },
    );
    await waitUntil("every build has ended", async () => (await api().store.builds.listBuilding()).length === 0);
  });
});
