import { listMetrics } from "@skerry/telemetry";
import { expect, test } from "vitest";
import { codeSpan, tableRows } from "./repository.ts";
import "@skerry/api/metrics";
import "@skerry/edge/metrics";
import "@skerry/node/metrics";
import "@skerry/store/metrics";

const metrics = listMetrics().filter(({ name }) => !name.startsWith("test_"));

test("docs/metrics.md lists exactly the metrics, with type, labels and meaning", () => {
  const documented = tableRows("docs/metrics.md").map(([name, type, labels = "", help]) => ({
    name: codeSpan(name),
    type,
    labels: labels === "none" ? [] : labels.split(", ").map((label) => codeSpan(label)),
    help,
  }));
  const byName = (a: { name: string | undefined }, b: { name: string | undefined }) => ((a.name ?? "") < (b.name ?? "") ? -1 : 1);
  expect(documented.toSorted(byName)).toEqual([...metrics].sort(byName));
});

test("names follow the conventions of Prometheus", () => {
  for (const { name, type } of metrics) {
    expect(name).toMatch(/^(skerry|process|nodejs)_[a-z0-9_]+$/);
    expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"]);
    if (type === "histogram") expect(name).toMatch(/_seconds$/);
    expect(name).not.toMatch(/_(ms|milliseconds|mb|kb|percent)(_|$)/);
  }
});

test("no label is an id of something that users make", () => {
  const labels = new Set(metrics.flatMap((metric) => metric.labels));
  for (const label of labels) expect(label).not.toMatch(/_id$|sandbox|team|template|build|key|user|path|url|address|image/);
});
