import { sampleOf, scaled } from "@skerry/testkit/depth";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SoakDifference } from "../soak/restore/check.ts";
import { runWorkloads, type WorkloadResult } from "../soak/restore/run-workload.ts";
import { type SoakPlatform, startSoakPlatform } from "../soak/restore/soak-platform.ts";
import { Subject } from "../soak/restore/subject.ts";
import { WORKLOADS, type Workload } from "../soak/restore/workloads.ts";

/** If no complete `./skerry test` ran before, this test makes the layer with the JVM, PostgreSQL and Chromium. */
const PREPARE_LIMIT_MS = 1_200_000;
const RUN_LIMIT_MS = 900_000;
const IN_SAMPLE = ["postgres"];

describe("the state of programs survives pauses and forks", () => {
  const workloads = sampleOf("programs with state that are paused and forked", WORKLOADS, ({ name }) => IN_SAMPLE.includes(name));
  const plan = { cycles: scaled("pauses and resumes of each program with state", { sample: 1, full: 6 }), forks: 2 };
  const seen = new Set<string>();
  const { signal } = new AbortController();
  let soak: SoakPlatform;
  let results: readonly WorkloadResult[];
  beforeAll(async () => {
    soak = await startSoakPlatform();
  }, PREPARE_LIMIT_MS);
  beforeAll(async () => {
    results = await runWorkloads(workloads, 2, { ...soak, plan, seen, signal, report: () => {} });
  }, RUN_LIMIT_MS);
  afterAll(() => soak?.platform[Symbol.asyncDispose]());

  it.each(workloads)(`$title: ${plan.cycles} cycles, ${plan.forks} forks`, ({ name }) => {
    const result = results.find(({ workload }) => workload === name);
    expect(result?.failure).toBeUndefined();
    expect(result?.cycles).toHaveLength(plan.cycles);
    expect(result?.forks).toEqual([expect.objectContaining({ count: plan.forks })]);
  });

  it("finds out when memory was lost", async () => {
    const python = WORKLOADS.find(({ name }) => name === "python") as Workload;
    const subject = await Subject.start(python, soak.template.alias, { ...soak, seen });
    try {
      await subject.pause(false);
      expect(() => subject.imageBytes()).toThrow(SoakDifference);
      await subject.resume();
      await expect(subject.check()).rejects.toThrow(SoakDifference);
    } finally {
      await subject.kill();
    }
  });
});
