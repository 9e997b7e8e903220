import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi } from "./client.ts";

let platform: SharedPlatform;
beforeAll(async () => {
  platform = await sharedPlatform("runc");
});
afterAll(() => platform[Symbol.asyncDispose]());

const create = (body: unknown) => callApi(platform, "/v2/sandboxes", { body });

describe("bad input", () => {
  it.each([
    ["no key", {}, { "X-API-Key": "" }],
    ["a wrong key", {}, { "X-API-Key": `e2b_${"0".repeat(40)}` }],
    ["a key that is none", {}, { "X-API-Key": "nonsense" }],
  ])("%s is 401, before anything else is looked at", async (_what, body, headers) => {
    const answer = await callApi(platform, "/v2/sandboxes", { body, headers });
    expect(answer).toMatchObject({ status: 401, body: { code: 401, message: expect.any(String) } });
    expect((await callApi(platform, "/sandboxes/NOT-AN-ID-AT-ALL", { headers })).status).toBe(401);
  });

  it.each<[string, unknown]>([
    ["no template", {}],
    ["a template of a wrong type", { templateID: 5 }],
    ["a timeout of a wrong type", { templateID: "base", timeout: "5" }],
    ["a fraction of a second", { templateID: "base", timeout: 1.5 }],
    ["a negative timeout", { templateID: "base", timeout: -1 }],
    ["a timeout beyond 32 bits", { templateID: "base", timeout: 2 ** 31 }],
    ["metadata that is no map", { templateID: "base", metadata: ["a"] }],
    ["metadata with a number", { templateID: "base", metadata: { a: 1 } }],
    ["an array", []],
    ["null", null],
  ])("%s is 400", async (_what, body) => {
    expect(await create(body)).toMatchObject({ status: 400, body: { code: 400, message: expect.stringMatching(/^validation error/) } });
  });

  it("invalid JSON and an invalid id are 400", async () => {
    const raw = await callApi(platform, "/v2/sandboxes", { raw: '{"templateID": "base"' });
    expect(raw).toMatchObject({ status: 400, body: { code: 400, message: expect.stringMatching(/^validation error/) } });
    expect((await callApi(platform, "/sandboxes/UPPER")).status).toBe(400);
    expect((await callApi(platform, "/sandboxes/a-b-c")).status).toBe(400);
  });

  it("an unknown template or sandbox is 404", async () => {
    expect(await create({ templateID: "no-such" })).toMatchObject({
      status: 404,
      body: { code: 404, message: "template 'no-such' not found" },
    });
    for (const method of ["GET", "DELETE"]) {
      const answer = await callApi(platform, "/sandboxes/inosuchsandbox", { method });
      expect(answer).toMatchObject({ status: 404, body: { code: 404 } });
    }
  });

  it("a body over the cap is 413", async () => {
    const answer = await create({ templateID: "base", metadata: { big: "x".repeat(17 * 1024 * 1024) } });
    expect(answer).toMatchObject({ status: 413, body: { code: 413 } });
  });

  it("an unknown route is 404 in the same form", async () => {
    expect(await callApi(platform, "/no/such/route")).toMatchObject({ status: 404, body: { code: 404, message: expect.any(String) } });
  });
});
