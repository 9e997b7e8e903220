// The agent's own tests, which run on this machine's kernel in packages/agent/test, run once more inside a sandbox of each
// runtime: the same agent, on the kernel that it will have there.

import { type Platform, startPlatform } from "@skerry/testkit";
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

describe.each(["gvisor", "runc"] as const)("in a sandbox on %s", (runtime) => {
  let platform: Platform;
  let report: Report;
  let output: string;
  beforeAll(async () => {
    platform = await startPlatform({ runtime });
    const sandbox = await Sandbox.create("base", clientOf(platform));
    await sandbox.files.write("/tmp/suites.tar", new Blob([await packAgentSuites()]), { user: "root" });
    const run = await sandbox.commands.run(AGENT_SUITES_COMMAND, { user: "root", timeoutMs: 280_000 }).catch((error: unknown) => error);
    output = JSON.stringify(run);
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
