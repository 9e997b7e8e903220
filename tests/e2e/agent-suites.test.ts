// Runs the agent's own tests inside a sandbox of each runtime. In packages/agent/test they run on this machine's kernel. Here the agent
// has the kernel of a sandbox.

import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Platform, startPlatform } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AGENT_SUITES, AGENT_SUITES_COMMAND, AGENT_SUITES_REPORT, packAgentSuites } from "./agent-suites.ts";
import { clientOf } from "./client.ts";

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

const TEMPLATE = "suites";

/** The template `base` with enough memory for Vitest. */
async function addTemplate(platform: Platform): Promise<void> {
  const base = JSON.parse(readFileSync(join(platform.dataDir, "templates/base.json"), "utf8")) as object;
  const template = { ...base, templateId: "suitessuitessuitessu", alias: TEMPLATE, buildId: randomUUID(), memoryMB: 2048 };
  writeFileSync(join(platform.dataDir, `templates/${TEMPLATE}.json`), JSON.stringify(template));
  await platform.restart();
}

describe.each(runtimesFor("the agent's own tests"))("in a sandbox on %s", (runtime) => {
  let platform: Platform;
  let report: Report;
  let output: string;
  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    await addTemplate(platform);
    const sandbox = await Sandbox.create(TEMPLATE, clientOf(platform));
    await sandbox.files.write("/tmp/suites.tar", new Blob([await packAgentSuites()]), { user: "root" });
    const run = await sandbox.commands.run(AGENT_SUITES_COMMAND, { user: "root", timeoutMs: 280_000 }).catch((error: unknown) => error);
    output = JSON.stringify(run);
    if (!(await sandbox.files.exists(AGENT_SUITES_REPORT))) throw new Error(`there is no report: ${output}`);
    report = JSON.parse(await sandbox.files.read(AGENT_SUITES_REPORT, { user: "root" })) as Report;
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  it.each(AGENT_SUITES)("the agent passes its tests of %s", (suite) => {
    const tests = report.testResults.find(({ name }) => name.endsWith(`/${suite}.test.ts`))?.assertionResults ?? [];
    const failed = tests.filter(({ status }) => status === "failed");
    expect(failed.map(({ fullName, failureMessages }) => [fullName, ...failureMessages])).toEqual([]);
    expect(tests.filter(({ status }) => status === "passed").length, output).toBeGreaterThan(5);
  });
});
