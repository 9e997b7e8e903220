import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { expect, it } from "vitest";
import { chooseStep } from "../soak/lifecycle/run-lifecycle.ts";
import { soakLifecycle } from "../soak/lifecycle/soak-lifecycle.ts";

const STEPS = scaled("random creates, pauses, resumes and kills", { sample: 40, full: 600 });

it.each(runtimesFor("random steps"))(
  `${STEPS} random steps on %s lose nothing and leave nothing`,
  { timeout: 900_000 },
  async (runtime) => {
    const lines: string[] = [];
    const { steps } = await soakLifecycle({
      steps: STEPS,
      atOnce: 4,
      seed: 5,
      runtime,
      signal: new AbortController().signal,
      onProgress: (line) => lines.push(line),
    });
    expect(steps.create.count + steps.pause.count + steps.resume.count + steps.kill.count).toBe(STEPS);
    for (const { count } of Object.values(steps)) expect(count).toBeGreaterThan(3);
    expect(lines.some((line) => line.startsWith(`${STEPS} of ${STEPS} steps`))).toBe(true);
  },
);

it("kills paused and running sandboxes", () => {
  expect([chooseStep(undefined, 0.1), chooseStep({ paused: true }, 0.1), chooseStep({ paused: false }, 0.1)]).toEqual([
    "create",
    "kill",
    "kill",
  ]);
  expect([chooseStep({ paused: true }, 0.9), chooseStep({ paused: false }, 0.9)]).toEqual(["resume", "pause"]);
});
