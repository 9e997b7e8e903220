import { listMetrics } from "@skerry/telemetry";
import { expect, test } from "vitest";
import { queriesOf, readDashboards } from "./dashboards.ts";
import { readText } from "./repository.ts";
import "@skerry/api/metrics";
import "@skerry/edge/metrics";
import "@skerry/node/metrics";
import "@skerry/store/metrics";

const rules = readText("deploy/prometheus/alerts.yml");
const names = [...rules.matchAll(/^ {6}- alert: (\w+)$/gm)].map(([, name = ""]) => name);
const expressions = [...rules.matchAll(/expr: >-\n +(.+)$/gm)].map(([, expression = ""]) => expression);
const dashboards = readDashboards();

/** What Prometheus adds to the metrics of a target. */
const TARGET_LABELS = ["job", "instance"];
const metrics = new Map(listMetrics().map((metric) => [metric.name, metric]));

/** The uses of metrics of Skerry in a query, with the labels that each use selects by. */
function usesIn(query: string): { name: string; labels: string[] }[] {
  const uses = query.matchAll(/\b((?:skerry|process|nodejs)_\w+)(?:\{([^}]*)\})?/g);
  return [...uses].map(([, name = "", selector = ""]) => ({
    name,
    labels: [...selector.matchAll(/(\w+)\s*[=!]/g)].map(([, label = ""]) => label),
  }));
}

test.each([
  ["deploy/prometheus/alerts.yml", expressions],
  ...dashboards.map((dashboard) => [`deploy/grafana/${dashboard.file}`, queriesOf(dashboard)] as const),
] as const)("%s names only metrics and labels that the code exports", (_file, queries) => {
  expect(queries.length).toBeGreaterThan(8);
  for (const query of queries) {
    const uses = usesIn(query);
    if (!/^up\{/.test(query)) expect([query, uses.length]).not.toEqual([query, 0]);
    for (const { name, labels } of uses) {
      const family = name.replace(/_(bucket|sum|count)$/, "");
      const metric = metrics.get(name) ?? (metrics.get(family)?.type === "histogram" ? metrics.get(family) : undefined);
      expect([name, metric?.name]).not.toEqual([name, undefined]);
      const known = [...TARGET_LABELS, ...(metric?.labels ?? []), ...(metric?.type === "histogram" ? ["le"] : [])];
      expect([query, labels.filter((label) => !known.includes(label))]).toEqual([query, []]);
    }
    for (const [, by = ""] of query.matchAll(/\bby \(([^)]*)\)/g)) {
      const known = [
        ...TARGET_LABELS,
        "le",
        ...uses.flatMap(({ name }) => metrics.get(name.replace(/_(bucket|sum|count)$/, ""))?.labels ?? []),
        ...uses.flatMap(({ name }) => metrics.get(name)?.labels ?? []),
      ];
      expect([query, by.split(/,\s*/).filter((label) => !known.includes(label))]).toEqual([query, []]);
    }
  }
});

test("each alert leads to its own section of docs/operating.md, and each section of an alert has its alert", () => {
  expect(expressions).toHaveLength(names.length);
  const runbooks = [...rules.matchAll(/runbook: docs\/operating\.md#(\S+)$/gm)].map(([, anchor]) => anchor);
  expect(runbooks).toEqual(names.map((name) => name.toLowerCase()));
  const sections = [...readText("docs/operating.md").matchAll(/^### (Skerry\w+)\n\n(.+)/gm)];
  expect(sections.map(([, name]) => name)).toEqual(names);
  for (const [, name, text] of sections) expect([name, text?.length]).not.toEqual([name, 0]);
});

test("each alert is tested with a series that is fine and with one that makes it fire", () => {
  const cases = readText("deploy/prometheus/alerts.test.yml").matchAll(/- alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:(.*)\n/g);
  const tested = [...cases].map(([, name, none]) => `${name} ${none?.trim() === "[]" ? "quiet" : "fires"}`);
  expect(tested).toEqual(names.flatMap((name) => [`${name} quiet`, `${name} fires`]));
});

test("dashboards have identities of their own, and panels have titles and queries", () => {
  expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(dashboards.length);
  for (const { panels } of dashboards) {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const { type, title, targets = [] } of panels) {
      expect(title).not.toBe("");
      expect([title, targets.length > 0]).toEqual([title, type !== "row"]);
    }
  }
});
