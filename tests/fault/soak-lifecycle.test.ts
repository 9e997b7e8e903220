import { expect, it } from "vitest";
import { chooseStep } from "../soak/lifecycle/run-lifecycle.ts";
import { soakLifecycle } from "../soak/lifecycle/soak-lifecycle.ts";

it.each(["gvisor", "runc"] as const)("60 random steps on %s lose nothing and leave nothing", { timeout: 300_000 }, async (runtime) => {
  const lines: string[] = [];
  const { steps } = await soakLifecycle({
    steps: 60,
    atOnce: 4,
    seed: 5,
    runtime,
    signal: new AbortController().signal,
    onProgress: (line) => lines.push(line),
  });
  expect(steps.create.count + steps.pause.count + steps.resume.count + steps.kill.count).toBe(60);
  for (const { count } of Object.values(steps)) expect(count).toBeGreaterThan(3);
  expect(lines.some((line) => line.startsWith("60 of 60 steps"))).toBe(true);
});

it("kills paused ones and running ones", () => {
  expect([chooseStep(undefined, 0.1), chooseStep({ paused: true }, 0.1), chooseStep({ paused: false }, 0.1)]).toEqual([
    "create",
    "kill",
    "kill",
  ]);
  expect([chooseStep({ paused: true }, 0.9), chooseStep({ paused: false }, 0.9)]).toEqual(["resume", "pause"]);
});
