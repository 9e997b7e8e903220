import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { testCacheDir } from "@skerry/testkit";
import { runtimesFor } from "@skerry/testkit/depth";
import { sharedPlatform } from "@skerry/testkit/run-services";
import { expect, it } from "vitest";

/** Each test with the first SDK version (2.x) that has its features: Ubuntu 22.04's Python can only install an older SDK. */
const PROGRAMS = [
  { program: "readme.py", since: 0 },
  { program: "signed_urls.py", since: 0 },
  { program: "snapshots.py", since: 63 },
  { program: "network_rules.py", since: 63 },
];

const minorOf = (environment: string): number => Number(/-2\.(\d+)\./.exec(environment)?.[1]);

it.each(runtimesFor("the SDK from PyPI", "runc"))("official PyPI SDK on %s", async (runtime) => {
  await using platform = await sharedPlatform(runtime);
  const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
  if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
  for (const { program, since } of PROGRAMS) {
    if (minorOf(environment) < since) continue;
    const { stdout } = await runCommand(join(testCacheDir(), environment, "bin/python"), [join(import.meta.dirname, program)], {
      env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env, TEAM_SLUG: platform.teamSlug },
      timeoutMs: 120_000,
    });
    expect(stdout, program).toBe("all well\n");
  }
});
