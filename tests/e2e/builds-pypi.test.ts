import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { preparePythonSdk } from "@skerry/testkit";
import { sharedPlatform } from "@skerry/testkit/run-services";
import { expect, it } from "vitest";

it("builds templates with the SDK from PyPI, synchronously and asynchronously", async () => {
  await using platform = await sharedPlatform("gvisor");
  const { stdout } = await runCommand(await preparePythonSdk(), [join(import.meta.dirname, "builds.py")], {
    env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env },
    timeoutMs: 120_000,
  });
  expect(stdout).toBe("all well\n");
});
