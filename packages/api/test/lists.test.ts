import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

function metadataQuery(pairs: Readonly<Record<string, string>>): string {
  const form = new URLSearchParams();
  for (const [key, value] of Object.entries(pairs)) form.append(encodeURIComponent(key), encodeURIComponent(value));
  return encodeURIComponent(form.toString());
}

describeOnEachDatabase("lists", { inSample: "both" }, (api) => {
  const ids = (answer: { body: { sandboxID: string }[] }) => answer.body.map((sandbox) => sandbox.sandboxID);

  it("come in pages, in both directions", async () => {
    const made: string[] = [];
    for (let i = 0; i < 7; i += 1) made.push(await api().create());
    await api().create({}, { key: api().otherKey });
    for (const order of ["asc", "desc"]) {
      const seen: string[] = [];
      let token: unknown = "";
      for (let pages = 0; token !== undefined && pages < 9; pages += 1) {
        const answer = await api().call("GET", `/v2/sandboxes?limit=3&order=${order}${token ? `&nextToken=${token}` : ""}`);
        expect(answer.headers["x-total-running"]).toBe("7");
        seen.push(...ids(answer));
        token = answer.headers["x-next-token"];
      }
      const starts = (await api().call("GET", `/v2/sandboxes?order=${order}`)).body.map((row: { startedAt: string }) => row.startedAt);
      expect(starts).toEqual(order === "asc" ? starts.toSorted() : starts.toSorted().reverse());
      expect(seen.toSorted()).toEqual(made.toSorted());
      expect(new Set(seen).size).toBe(7);
    }
    // An exactly full page is the last one.
    const full = await api().call("GET", "/v2/sandboxes?limit=7");
    expect(full.headers).not.toHaveProperty("x-next-token");
    expect(ids(await api().call("GET", "/sandboxes"))).toEqual(ids(full));
    const ascending = (await api().call("GET", "/v2/sandboxes?limit=1&order=asc")).headers["x-next-token"];
    expect((await api().call("GET", `/v2/sandboxes?nextToken=${ascending}`)).body).toEqual({ code: 400, message: "Invalid next token" });
  });

  it("are filtered by metadata in its three layers", async () => {
    const odd = { "a&b=c": "100% + 1", ключ: "значение 🎉", quote: "\"\\\n'" };
    const id = await api().create({ metadata: { ...odd, n: "1" } });
    await api().create({ metadata: { n: "10" } });
    for (const path of ["/sandboxes", "/v2/sandboxes"]) {
      expect(ids(await api().call("GET", `${path}?metadata=${metadataQuery(odd)}`))).toEqual([id]);
      expect(ids(await api().call("GET", `${path}?metadata=n%3D1`))).toEqual([id]);
      expect(ids(await api().call("GET", `${path}?metadata=n%3D1%26n2%3D1`))).toEqual([]);
      expect(ids(await api().call("GET", `${path}?metadata=`))).toHaveLength(2);
      for (const bad of ["a", "a%3Db%3Dc", "a%3D%2525", "a%3D%2500", "%zz"]) {
        const answer = await api().call("GET", `${path}?metadata=${bad}`);
        expect(answer.status).toBe(400);
        expect(answer.body.message).toMatch(/^Error parsing metadata/);
      }
    }
    const many = (count: number) => metadataQuery(Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, "1"])));
    expect(ids(await api().call("GET", `/v2/sandboxes?metadata=${many(64)}`))).toEqual([]);
    expect((await api().call("GET", `/v2/sandboxes?metadata=${many(1_001)}`)).status).toBe(400);
    const filtered = await api().call("GET", `/v2/sandboxes?metadata=n%3D1`);
    expect(filtered.headers["x-total-running"]).toBe("1");
  });

  it("are filtered by state, template and start", async () => {
    const first = await api().create();
    const startedAt = (await api().call("GET", `/sandboxes/${first}`)).body.startedAt as string;
    await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await api().create();
    const list = async (query: string) => ids(await api().call("GET", `/v2/sandboxes?${query}`));
    expect(await list("state=running")).toEqual([second, first]);
    expect(await list("state=running,paused")).toHaveLength(2);
    expect(await list("state=paused")).toEqual([]);
    expect((await api().call("GET", "/v2/sandboxes?state=paused")).headers).not.toHaveProperty("x-total-running");
    expect(await list("template=base")).toHaveLength(2);
    expect(await list(`template=${api().templateId}`)).toHaveLength(2);
    expect(await list("template=nope")).toEqual([]);
    expect(await list(`startedAfter=${startedAt}`)).toEqual([second, first]);
    expect(await list(`startedAfter=${startedAt.replace("Z", "001Z")}`)).toEqual([second]);
    expect(await list("startedAfter=2999-01-01T00:00:00Z")).toEqual([]);
    const refused = {
      "state=killed": /^validation error/,
      "state=": /^validation error/,
      "order=up": /^validation error/,
      "limit=0": /^validation error/,
      "limit=101": /^validation error/,
      "limit=abc": /^validation error/,
      "limit=1.5": /^validation error/,
      "limit=1&limit=2": /^validation error/,
      "startedAfter=yesterday": /^validation error/,
      "nextToken=abc": /^Invalid next token/,
      "template=base:v1": /^Invalid template: tags are not supported here/,
    };
    for (const [query, message] of Object.entries(refused)) {
      const answer = await api().call("GET", `/v2/sandboxes?${query}`);
      expect({ query, ...answer.body }).toEqual({ query, code: 400, message: expect.stringMatching(message) });
    }
  });

  it("hide what is being killed", async () => {
    const id = await api().create();
    api().node.kill = "hang";
    const kill = api().call("DELETE", `/sandboxes/${id}`);
    await expect.poll(async () => ids(await api().call("GET", "/v2/sandboxes"))).toEqual([]);
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(404);
    const timeout = await api().call("POST", `/sandboxes/${id}/timeout`, { body: { timeout: 9 } });
    expect(timeout.body).toEqual({ code: 409, message: `Sandbox "${id}" is being killed` });
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(409);
    api().node.release();
    expect((await kill).status).toBe(204);
  });
});
