import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { UsageRoundSchema } from "@skerry/wire/node";
import { Type } from "typebox";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { SandboxMetricSchema } from "../src/http/routes/metrics/metric-bodies.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const STEP_MS = 5_000;
const MIB = 2 ** 20;
// Rounds run when a test asks for them.
const timing = { metricsMs: 3_600_000 };

describeOnEachDatabase("metrics", { inSample: "both", nodes: 2, timing }, (api) => {
  const round = (atMs: number, ...ids: string[]): MessageInitShape<typeof UsageRoundSchema> => ({
    atMs: BigInt(atMs),
    sandboxes: ids.map((sandboxId) => ({
      sandboxId,
      cpuCount: 2,
      cpuPercent: 12.5,
      memoryUsedBytes: BigInt(100 * MIB),
      memoryTotalBytes: BigInt(512 * MIB),
      memoryCacheBytes: 0n,
      diskUsedBytes: BigInt(MIB),
      diskTotalBytes: BigInt(1024 * MIB),
    })),
  });
  /** Rounds of the last minutes, on the grid of five seconds, oldest first. */
  const recent = (count: number) => {
    const last = Math.floor(Date.now() / STEP_MS) * STEP_MS - STEP_MS;
    return Array.from({ length: count }, (_, index) => last - (count - 1 - index) * STEP_MS);
  };
  const get = (path: string, options = {}) => api().call("GET", path, options);
  const metricsOf = async (id: string, query = "?start=0") => (await get(`/sandboxes/${id}/metrics${query}`)).body;

  it("of a sandbox are collected from its node, all of them and each once", async () => {
    const id = await api().create();
    const times = recent(30);
    api().node.usage = times.map((at) => round(at, id));
    await api().api.metricRound();
    await api().api.metricRound();
    const start = Math.floor((Date.now() - 300_000) / 1000);
    const shown = await metricsOf(id, `?start=${start}`);
    expect(Value.Errors(Type.Array(SandboxMetricSchema), shown)).toEqual([]);
    expect(shown.map(({ timestampUnix }: { timestampUnix: number }) => timestampUnix * 1000)).toEqual(times);
    expect(shown[0]).toMatchObject({ cpuCount: 2, cpuUsedPct: 12.5, memUsed: 100 * MIB, memTotal: 512 * MIB, diskTotal: 1024 * MIB });
    // Another process, or this one after a restart, collects them again.
    await using second = await api().createSecond({ timing });
    await second.metricRound();
    expect(await metricsOf(id, `?start=${start}`)).toHaveLength(30);
    const [, one] = times;
    expect(await metricsOf(id, `?start=${(one ?? 0) / 1000}&end=${(one ?? 0) / 1000}`)).toHaveLength(1);
  });

  it("wait in the node while it does not answer", async () => {
    const id = await api().create();
    api().node.usage = recent(3).map((at) => round(at, id));
    api().node.list = Code.Unavailable;
    await api().api.metricRound();
    expect(await metricsOf(id)).toEqual([]);
    api().node.list = "ok";
    await api().api.metricRound();
    expect(await metricsOf(id)).not.toEqual([]);
  });

  it("of others and of unknown sandboxes are empty, and ranges are checked", async () => {
    const id = await api().create();
    api().node.usage = recent(3).map((at) => round(at, id));
    await api().api.metricRound();
    expect((await get(`/sandboxes/${id}/metrics?start=0`, { key: api().otherKey })).body).toEqual([]);
    expect(await metricsOf(`i${"0".repeat(20)}`)).toEqual([]);
    const reversed = await get(`/sandboxes/${id}/metrics?start=9&end=8`);
    expect(reversed).toMatchObject({ status: 400, body: { message: "Invalid time range for metrics" } });
    for (const query of ["start=-1", "start=x", "end=1.5"])
      expect((await get(`/sandboxes/${id}/metrics?${query}`)).status, query).toBe(400);
    expect((await get("/sandboxes/UPPER/metrics")).status).toBe(400);
    expect((await get(`/sandboxes/${id}/metrics`, { key: null })).status).toBe(401);
  });

  it("of many sandboxes are the latest of each that has any", async () => {
    const [first, second, none] = [await api().create(), await api().create(), await api().create()];
    const times = recent(2);
    api().node.usage = [round(times[0] ?? 0, first, second), round(times[1] ?? 0, first)];
    await api().api.metricRound();
    const { body } = await get(`/sandboxes/metrics?sandbox_ids=${first},${second},${none}`);
    expect(Object.keys(body.sandboxes).toSorted()).toEqual([first, second].toSorted());
    expect(body.sandboxes[first].timestampUnix * 1000).toBe(times[1]);
    expect(body.sandboxes[second].timestampUnix * 1000).toBe(times[0]);
    expect((await get(`/sandboxes/metrics?sandbox_ids=${first}`, { key: api().otherKey })).body).toEqual({ sandboxes: {} });
    const many = Array.from({ length: 101 }, (_, index) => `i${String(index).padStart(20, "0")}`).join(",");
    const message = "Too many sandboxes requested, maximum is 100";
    expect(await get(`/sandboxes/metrics?sandbox_ids=${many}`)).toMatchObject({ status: 400, body: { message } });
    for (const query of ["", "?sandbox_ids=", `?sandbox_ids=${first},${first}`, "?sandbox_ids=../x"]) {
      expect((await get(`/sandboxes/metrics${query}`)).status, query).toBe(400);
    }
  });

  it("of a team count what it runs and starts, with their maxima", async () => {
    const path = `/teams/${api().teamId}/metrics`;
    for (let made = 0; made < 3; made += 1) await api().create();
    await api().api.metricRound();
    const start = Math.floor(Date.now() / 1000) - 60;
    const points = (await get(`${path}?start=${start}`)).body as { concurrentSandboxes: number; sandboxStartRate: number }[];
    expect(Math.max(...points.map(({ concurrentSandboxes }) => concurrentSandboxes))).toBe(3);
    expect(points.reduce((sum, { sandboxStartRate }) => sum + sandboxStartRate, 0)).toBeCloseTo(3 / 5);
    const maximum = await get(`${path}/max?start=${start}&metric=concurrent_sandboxes`);
    expect(maximum.body).toMatchObject({ value: 3, timestampUnix: expect.any(Number) });
    expect((await get(`${path}/max?start=${start}&metric=sandbox_start_rate`)).body.value).toBeCloseTo(3 / 5);
    expect(((await get(path)).body as unknown[]).length).toBeGreaterThan(600);
  });

  it("of another team are forbidden", async () => {
    const other = randomUUID();
    const message = `You (${api().teamId}) are not authorized to access this team's (${other}) metrics`;
    for (const path of ["metrics", "metrics/max?metric=concurrent_sandboxes"]) {
      expect(await get(`/teams/${other}/${path}`)).toMatchObject({ status: 403, body: { message } });
    }
    const reversed = await get(`/teams/${api().teamId}/metrics?start=9&end=8`);
    expect(reversed).toMatchObject({ status: 400, body: { message: "start time cannot be after end time" } });
    for (const query of ["", "?metric=nope"]) expect((await get(`/teams/${api().teamId}/metrics/max${query}`)).status).toBe(400);
  });
});
