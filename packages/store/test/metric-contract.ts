import { expect, it } from "vitest";
import { METRIC_STEPS, type SandboxMetric } from "../src/index.ts";
import { addRunning, addTeam, nextId, type StoreContext } from "./store-contract.ts";

const HOUR_MS = 3_600_000;
const STEP_MS = METRIC_STEPS[0].stepMs;
const NOW = 1_800_000_000_000;

export function metricContract({ store, another }: StoreContext): void {
  const metric = (sandboxId: string, at: number, fields: Partial<SandboxMetric> = {}): SandboxMetric => ({
    sandboxId,
    at,
    cpuCount: 2,
    cpuPercent: 12.34,
    memoryUsedBytes: 2 ** 33,
    memoryTotalBytes: 2 ** 34,
    memoryCacheBytes: 0,
    diskUsedBytes: 2 ** 41,
    diskTotalBytes: 2 ** 42,
    ...fields,
  });
  const ALL = { start: 0, end: Number.MAX_SAFE_INTEGER };

  it("keeps each measurement once, whoever writes it, and returns a range in order", async () => {
    const id = nextId();
    const metrics = [3, 1, 2].map((number) => metric(id, NOW + number * STEP_MS));
    await store().sandboxMetrics.add(metrics, STEP_MS);
    await (await another()).sandboxMetrics.add(metrics, STEP_MS);
    const ordered = metrics.toSorted((a, b) => a.at - b.at);
    expect(await store().sandboxMetrics.range(id, ALL)).toEqual(ordered);
    expect(await store().sandboxMetrics.range(id, { start: NOW + 2 * STEP_MS, end: NOW + 2 * STEP_MS })).toEqual([ordered[1]]);
    expect(await store().sandboxMetrics.newestAt(STEP_MS)).toBe(NOW + 3 * STEP_MS);
  });

  it("finds the newest of many sandboxes of one team, and writes thousands at once", async () => {
    const [teamId, otherId] = [await addTeam(store()), await addTeam(store())];
    const ids = await Promise.all(Array.from({ length: 3 }, () => addRunning(store(), teamId)));
    const foreign = await addRunning(store(), otherId);
    const rounds = Array.from({ length: 600 }, (_, round) => [...ids.slice(0, 2), foreign].map((id) => metric(id, NOW + round * STEP_MS)));
    await store().sandboxMetrics.add(rounds.flat(), STEP_MS);
    const newest = await store().sandboxMetrics.newest(teamId, [...ids, foreign]);
    expect(newest.map(({ sandboxId }) => sandboxId).toSorted()).toEqual(ids.slice(0, 2).toSorted());
    expect(new Set(newest.map(({ at }) => at))).toEqual(new Set([NOW + 599 * STEP_MS]));
    expect(await store().sandboxMetrics.newest(teamId, [])).toEqual([]);
  });

  it("summarises by age, once, until it forgets", async () => {
    const id = nextId();
    const begin = NOW - 2 * HOUR_MS;
    const rows = Array.from({ length: 12 }, (_, round) => metric(id, begin + round * STEP_MS, { cpuPercent: round }));
    const young = metric(id, NOW - STEP_MS);
    await store().sandboxMetrics.add([...rows, young], STEP_MS);
    const summarise = async (now: number) => {
      const stores = [store(), await another()];
      await Promise.all(stores.map((one) => one.sandboxMetrics.summarise(now, now - 30 * 24 * HOUR_MS)));
      return await store().sandboxMetrics.range(id, ALL);
    };
    // Two steps of 30 s: the averages of 0 to 5, and of 6 to 11.
    const expected = [metric(id, begin, { cpuPercent: 2.5 }), metric(id, begin + 30_000, { cpuPercent: 8.5 }), young];
    expect(await summarise(NOW)).toEqual(expected);
    expect(await summarise(NOW + 1)).toEqual(expected);
    const muchLater = await summarise(NOW + 8 * 24 * HOUR_MS);
    expect(muchLater.map(({ at }) => at % (15 * 60_000))).toEqual(muchLater.map(() => 0));
    expect(muchLater).toHaveLength(2);
    expect(await summarise(NOW + 40 * 24 * HOUR_MS)).toEqual([]);
  });

  it("forgets the metrics of a sandbox with the sandbox", async () => {
    const id = await addRunning(store(), await addTeam(store()));
    await store().sandboxMetrics.add([metric(id, NOW)], STEP_MS);
    await store().sandboxes.transition(id, { from: "running", to: "ended", event: "gone", reason: "node_lost", now: 40, actor: "test" });
    await store().sandboxes.forgetEnded(41);
    expect(await store().sandboxMetrics.range(id, ALL)).toEqual([]);
  });

  it("adds the starts of several processes, and keeps the most that ran at once", async () => {
    const teamId = await addTeam(store());
    const row = { teamId, at: NOW, stepMs: STEP_MS, concurrent: 3, starts: 2 };
    await store().teamMetrics.add([row]);
    await (await another()).teamMetrics.add([{ ...row, concurrent: 2, starts: 1 }]);
    const sum = { ...row, starts: 3 };
    expect(await store().teamMetrics.range(teamId, ALL)).toEqual([sum]);
    await store().teamMetrics.add([{ ...row, at: NOW + STEP_MS, concurrent: 5, starts: 4 }]);
    await store().teamMetrics.summarise(NOW + 2 * HOUR_MS, 0);
    expect(await store().teamMetrics.range(teamId, ALL)).toEqual([{ ...row, stepMs: 30_000, concurrent: 5, starts: 7 }]);
    await store().teamMetrics.summarise(NOW + 2 * HOUR_MS, NOW + HOUR_MS);
    expect(await store().teamMetrics.range(teamId, ALL)).toEqual([]);
  });
}
