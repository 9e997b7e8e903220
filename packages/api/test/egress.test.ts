import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { EgressBatchSchema } from "@skerry/wire/node";
import { Type } from "typebox";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { EgressLineSchema } from "../src/http/routes/egress/egress-bodies.ts";
import { describeOnEachDatabase } from "./each-database.ts";

// Rounds run when a test asks for them.
const timing = { metricsMs: 3_600_000 };

describeOnEachDatabase("egress logs", { inSample: "both", nodes: 2, timing }, (api) => {
  const get = (path: string, options = {}) => api().call("GET", path, options);
  const line = (sandboxId: string, name: string, more = {}) => ({
    sandboxId,
    atMs: BigInt(Date.now()),
    protocol: "tls",
    name,
    address: "192.0.2.1",
    port: 443,
    sentBytes: 517n,
    receivedBytes: 2n ** 33n,
    isAllowed: true,
    rule: name,
    count: 1n,
    ...more,
  });
  const batch = (source: string, number: number, id: string, ...names: string[]): MessageInitShape<typeof EgressBatchSchema> => ({
    source,
    number: BigInt(number),
    lines: names.map((name) => line(id, name)),
    counts: [{ sandboxId: id, sentBytes: 100n, receivedBytes: 1_000n, connections: 2n, refused: 1n }],
  });
  const namesOf = async (id: string, query = "") =>
    (await get(`/sandboxes/${id}/egress${query}`)).body.lines.map(({ name }: { name: string }) => name);

  it("are collected from nodes, each batch once, and belong to the sandbox's team alone", async () => {
    const id = await api().create();
    api().node.egress = [batch("a", 1, id, "one.example"), batch("a", 2, id, "two.example", "three.example")];
    api().node.list = Code.Unavailable;
    await api().api.metricRound();
    expect(await namesOf(id)).toEqual([]);
    api().node.list = "ok";
    await api().api.metricRound();
    expect(api().node.egress).toEqual([]);
    // Another process, which was slower, delivers one of them again.
    api().node.egress = [batch("a", 2, id, "two.example"), batch("b", 1, id, "four.example")];
    await using second = await api().createSecond({ timing });
    await second.metricRound();
    const { body } = await get(`/sandboxes/${id}/egress`);
    expect(Value.Errors(Type.Array(EgressLineSchema), body.lines)).toEqual([]);
    expect(body.lines[0]).toMatchObject({ verdict: "allowed", rule: "one.example", sentBytes: 517, receivedBytes: 2 ** 33, count: 1 });
    expect(await namesOf(id)).toEqual(["one.example", "two.example", "three.example", "four.example"]);
    expect(body.totals).toEqual({ sentBytes: 300, receivedBytes: 3_000, connections: 6, refused: 3 });
    const foreign = await get(`/sandboxes/${id}/egress`, { key: api().otherKey });
    expect(foreign.body).toEqual({ lines: [], nextCursor: 0, totals: { sentBytes: 0, receivedBytes: 0, connections: 0, refused: 0 } });
    expect((await get(`/sandboxes/${id}/egress`, { key: null })).status).toBe(401);
    const sums = (await get(`/teams/${api().teamId}/egress`)).body as { sentBytes: number; refused: number }[];
    expect(sums.reduce((sum, { sentBytes }) => sum + sentBytes, 0)).toBe(300);
    expect((await get(`/teams/${api().teamId}/egress`, { key: api().otherKey })).status).toBe(403);
    // It outlives the sandbox, and what comes late is added.
    await api().call("DELETE", `/sandboxes/${id}`);
    api().node.egress = [batch("b", 2, id, "late.example")];
    await api().api.metricRound();
    expect(await namesOf(id)).toContain("late.example");
  });

  it("are read on from a cursor, by time and by verdict", async () => {
    const id = await api().create();
    const now = Date.now();
    const refused = { isAllowed: false, rule: "no_name", count: 9n };
    const lines = [
      line(id, "old.example", { atMs: BigInt(now - 60_000) }),
      line(id, "", { atMs: BigInt(now - 30_000), ...refused }),
      line(id, "new.example", { atMs: BigInt(now) }),
    ];
    api().node.egress = [{ source: "c", number: 1n, lines, counts: [] }];
    await api().api.metricRound();
    const first = (await get(`/sandboxes/${id}/egress?limit=2`)).body;
    expect(first.lines.map(({ count }: { count: number }) => count)).toEqual([1, 9]);
    const next = (await get(`/sandboxes/${id}/egress?cursor=${first.nextCursor}`)).body;
    expect(next.lines.map(({ name }: { name: string }) => name)).toEqual(["new.example"]);
    expect((await get(`/sandboxes/${id}/egress?cursor=${next.nextCursor}`)).body).toMatchObject({ lines: [], nextCursor: next.nextCursor });
    expect(await namesOf(id, "?verdict=refused")).toEqual([""]);
    expect(await namesOf(id, `?start=${now - 45_000}&end=${now - 15_000}`)).toEqual([""]);
    expect((await get(`/sandboxes/${id}/egress?start=2&end=1`)).status).toBe(400);
    expect((await get(`/sandboxes/${id}/egress?limit=0`)).status).toBe(400);
  });
});
