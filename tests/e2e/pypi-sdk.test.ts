import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { startPlatform, testCacheDir } from "@skerry/testkit";
import { expect, it } from "vitest";

it.each(["gvisor", "runc"] as const)("official PyPI SDK on %s", async (runtime) => {
  await using platform = await startPlatform({ runtime });
  const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
  if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
  for (const program of ["readme.py", "signed_urls.py", "snapshots.py"]) {
    const { stdout } = await runCommand(join(testCacheDir(), environment, "bin/python"), [join(import.meta.dirname, program)], {
      env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env },
      timeoutMs: 120_000,
    });
    expect(stdout, program).toBe("all well\n");
  }
});
