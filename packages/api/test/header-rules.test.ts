// Rules for headers of requests, and how the values of secrets reach nodes, with a node that keeps them in memory.

import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { SandboxDetailSchema } from "../src/http/schemas.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const HEADERS = { Authorization: `Bearer \${e2b.secrets.Token}`, "X-Fixed": "a" };
const rule = (headers: object = HEADERS) => [{ transform: { headers } }];

describeOnEachDatabase("rules for headers", { inSample: "both", timing: { reconcileMs: 50 } }, (api) => {
  const put = (id: string, body: object) => api().call("PUT", `/sandboxes/${id}/network`, { body });
  const post = (path: string, body: object = {}) => api().call("POST", path, { body });
  const addSecret = async (name: string, value: string) => expect((await post("/secrets", { name, value })).status).toBe(201);
  const onNode = (id: string) => api().node.held.get(id)?.spec;
  const filled = (id: string) => onNode(id)?.secrets?.rules.map(({ host, headers, problem }) => ({ host, headers, problem }));
  const shown = async (id: string) => {
    const answer = await api().call("GET", `/sandboxes/${id}`);
    expect(Value.Errors(SandboxDetailSchema, answer.body)).toEqual([]);
    return answer;
  };

  it("reach the node with the values of secrets, which nothing else has", async () => {
    await addSecret("token", "v4lue-of-token");
    const network = { rules: { "API.example.com": rule(), "*.example.org": [] } };
    const id = await api().create({ network });
    expect(filled(id)).toEqual([
      { host: "api.example.com", headers: { Authorization: "Bearer v4lue-of-token", "X-Fixed": "a" }, problem: "" },
      { host: "*.example.org", headers: {}, problem: "" },
    ]);
    const { body, text } = await shown(id);
    expect(body.network).toEqual({ rules: { "api.example.com": rule(), "*.example.org": [] } });
    expect(text).not.toContain("v4lue");
    expect(JSON.stringify(onNode(id)?.options)).not.toContain("v4lue");
    expect(JSON.stringify(await api().store.sandboxes.find(id))).not.toContain("v4lue");
    expect((await put(id, {})).status).toBe(204);
    expect(onNode(id)?.secrets).toBeUndefined();
    expect((await shown(id)).body.network).toBeUndefined();
  });

  it("follow a secret that is created, changed or deleted later, and a node that has forgotten it", async () => {
    const id = await api().create({ network: { rules: { "api.example.com": rule() } } });
    expect(filled(id)).toMatchObject([{ headers: {}, problem: "the header Authorization refers to a secret that does not exist" }]);
    const untilSent = (value: string | undefined) =>
      waitUntil(`the node has ${value}`, () => filled(id)?.[0]?.headers.Authorization === value && value !== undefined);
    await addSecret("token", "one");
    await untilSent("Bearer one");
    expect((await post("/secrets/token", { value: "two" })).status).toBe(200);
    await untilSent("Bearer two");
    const held = api().node.held.get(id);
    if (held) held.spec = { ...held.spec, secrets: undefined };
    await untilSent("Bearer two");
    expect((await post("/secrets/token", { value: "with\nline" })).status).toBe(200);
    await waitUntil("the node has nothing", () => /no header can have/.test(filled(id)?.[0]?.problem ?? ""));
    expect((await api().call("DELETE", "/secrets/token")).status).toBe(204);
    await waitUntil("the node has nothing", () => /does not exist/.test(filled(id)?.[0]?.problem ?? ""));
    const calls = api().node.countCalls("setSecrets", id);
    await api().api.reconcile();
    expect(api().node.countCalls("setSecrets", id)).toBe(calls);
  });

  it("use no secret of another team", async () => {
    expect((await api().call("POST", "/secrets", { body: { name: "token", value: "theirs" }, key: api().otherKey })).status).toBe(201);
    const id = await api().create({ network: { rules: { "api.example.com": rule() } } });
    expect(filled(id)).toMatchObject([{ headers: {}, problem: expect.stringContaining("does not exist") }]);
  });

  it("hold after a pause, with the same authority, which forks have as well; other sandboxes have another", async () => {
    await addSecret("token", "one");
    const [id, other] = await Promise.all([1, 2].map(() => api().create({ network: { rules: { "api.example.com": rule() } } })));
    const seedOf = (of = "") => onNode(of)?.secrets?.authoritySeed;
    const seed = seedOf(id);
    expect(seed).toMatch(/^[0-9a-f]{64}$/);
    expect(seedOf(other)).not.toBe(seed);
    expect((await post(`/sandboxes/${id}/pause`)).status).toBe(204);
    expect((await put(id ?? "", { rules: { "b.example.com": rule() } })).status).toBe(204);
    const forks = (await post(`/sandboxes/${id}/fork`)).body as { sandbox: { sandboxID: string } }[];
    const fork = forks[0]?.sandbox.sandboxID;
    expect((await post(`/v2/sandboxes/${id}/connect`)).status).toBe(201);
    expect([seedOf(id), seedOf(fork)]).toEqual([seed, seed]);
    expect([filled(id ?? ""), filled(fork ?? "")]).toMatchObject(Array(2).fill([{ host: "b.example.com", problem: "" }]));
  });

  it("that are not valid are refused, and change nothing", async () => {
    const id = await api().create();
    const rules = { "a.example.com": rule({ Host: "evil" }) };
    const answers = [await post("/v2/sandboxes", { templateID: "base", network: { rules } }), await put(id, { rules })];
    for (const answer of answers) {
      expect(answer).toMatchObject({
        status: 400,
        body: { message: "network rules are not valid: a.example.com: the header Host cannot be set by a rule" },
      });
    }
    expect((await shown(id)).body.network).toBeUndefined();
  });
});
