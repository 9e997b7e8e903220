import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { testCacheDir } from "@skerry/testkit";
import { sharedPlatform } from "@skerry/testkit/run-services";
import { expect, it } from "vitest";

it("the official PyPI SDK wakes paused sandboxes by using them, but not by asking why they disappeared", async () => {
  await using platform = await sharedPlatform("gvisor");
  const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
  if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
  const { stdout } = await runCommand(join(testCacheDir(), environment, "bin/python"), [join(import.meta.dirname, "auto_resume.py")], {
    env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env },
    timeoutMs: 120_000,
  });
  expect(stdout).toBe("all well\n");
});
