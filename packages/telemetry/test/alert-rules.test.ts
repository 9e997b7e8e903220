// The alert rules and the queries of the dashboards, read by Prometheus's own program.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { preparePromtool } from "@skerry/testkit";
import { beforeAll, expect, it } from "vitest";
import { queriesOf, readDashboards } from "../../../tests/repo/dashboards.ts";

const RULES = join(import.meta.dirname, "../../../deploy/prometheus");

let promtool: string;
beforeAll(async () => {
  promtool = await preparePromtool();
});

/** Throws with what the program complains about. */
async function run(...args: string[]): Promise<string> {
  const { stdout, stderr } = await runCommand(promtool, args, { cwd: RULES, timeoutMs: 120_000 });
  return stdout + stderr;
}

it("the configuration and the rules are valid", async () => {
  expect(await run("check", "config", "prometheus.yml")).toContain("1 rule files found");
});

it("each alert fires when it should, and not before", async () => {
  expect(await run("test", "rules", "alerts.test.yml")).toContain("SUCCESS");
});

it("every query of the dashboards is valid", async () => {
  const queries = readDashboards().flatMap(queriesOf);
  const rules = queries.map((expr, at) => ({ record: `query:${at}`, expr }));
  const dir = mkdtempSync(join(tmpdir(), "skerry-queries-"));
  try {
    const file = join(dir, "queries.yml");
    // YAML contains JSON.
    writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboards", rules }] }));
    expect(await run("check", "rules", file)).toContain(`${queries.length} rules found`);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
