import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createOpenApi } from "./openapi.ts";
import { OPERATIONS } from "./operations.ts";

const SPEC = join(import.meta.dirname, "../../../../spec/platform.openapi.json");

describe("the OpenAPI document", () => {
  it("is the committed one; `node packages/api/write-openapi.ts` writes it", async () => {
    expect(JSON.parse(await readFile(SPEC, "utf8"))).toEqual(JSON.parse(JSON.stringify(createOpenApi(OPERATIONS))));
  });

  it("names every operation once", () => {
    const ids = OPERATIONS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const routes = OPERATIONS.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(routes).size).toBe(routes.length);
  });

  it("has a component behind every reference", () => {
    const document = createOpenApi(OPERATIONS) as { components: { schemas: Record<string, unknown> } };
    const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map((match) => match[1] ?? "");
    expect(references.length).toBeGreaterThan(10);
    for (const name of references) expect(document.components.schemas).toHaveProperty(name);
  });
});
