import { relative } from "node:path";
import { TestRun } from "@skerry/test-runner/test-run";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Starts files in the order of the run's plan, longest first. Without a plan, uses Vitest's order. */
export class SlowestFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    const run = process.env.SKERRY_TEST_RUN;
    if (run === undefined) return super.sort(specifications);
    const order = new Map(new TestRun(run).readPlan().files.map((file, index) => [file, index]));
    const indexOf = ({ moduleId }: TestSpecification) => order.get(relative(this.ctx.config.root, moduleId)) ?? order.size;
    return specifications.toSorted((a, b) => indexOf(a) - indexOf(b));
  }
}
