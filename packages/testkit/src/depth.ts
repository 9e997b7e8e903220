// Decides how much a test run covers: `./skerry test` runs a sample of every matrix, `./skerry test --all` runs all cases.
// A sample records what it leaves out, so that the summary of the run can report what was not tested.

import { type LeftOut, type TestDepth, TestRun } from "@skerry/test-runner/test-run";
import { it } from "vitest";

/** The value of SKERRY_TEST_DEPTH; "sample" by default. Throws for any other value. */
export function testDepth(): TestDepth {
  const depth = process.env.SKERRY_TEST_DEPTH || "sample";
  if (depth !== "sample" && depth !== "full") throw new Error(`SKERRY_TEST_DEPTH is "sample" or "full", not "${depth}"`);
  return depth;
}

/** A number of steps, cycles or fuzz runs by depth. `what` names the counted things in the plural. */
export function scaled(what: string, { sample, full }: { readonly sample: number; readonly full: number }): number {
  if (testDepth() === "full") return full;
  leaveOut({ what, ran: sample, of: full });
  return sample;
}

/** The cases of a matrix that this run covers. `what` names the cases in the plural. */
export function sampleOf<Case>(what: string, all: readonly Case[], isInSample: (one: Case, index: number) => boolean) {
  return take({ what }, all, isInSample);
}

/** Like `sampleOf`, but a sample may be empty. The test file must contain another test. */
export function sampleOrNone<Case>(what: string, all: readonly Case[], isInSample: (one: Case) => boolean): readonly Case[] {
  if (testDepth() === "full") return all;
  const taken = all.filter(isInSample);
  leaveOut({ what, ran: taken.length, of: all.length });
  return taken;
}

/** Defines a test that a sample leaves out. The test file must contain another test. */
export function itInFullRuns(name: string, test: () => Promise<void>): void {
  if (testDepth() === "full") it(name, test);
  else leaveOut({ what: `tests: ${name}`, ran: 0, of: 1 });
}

const RUNTIMES = ["gvisor", "runc"] as const;
const DATABASES = ["sqlite", "postgres"] as const;

/** For a suite that depends little on the runtime: a sample runs it on one runtime, a full run on both. */
export function runtimesFor(suite: string, inSample: (typeof RUNTIMES)[number] = "gvisor") {
  return take({ what: "runtimes", suite }, RUNTIMES, (runtime) => runtime === inSample);
}

/** For a suite that depends little on the database: a sample runs it on one database, a full run on both. */
export function databasesFor(suite: string, inSample: (typeof DATABASES)[number]) {
  return take({ what: "databases", suite }, DATABASES, (database) => database === inSample);
}

/** Throws when the sample has no case, because the suite would test nothing. */
function take<Case>(
  about: Pick<LeftOut, "what" | "suite">,
  all: readonly Case[],
  isInSample: (one: Case, index: number) => boolean,
): [Case, ...Case[]] {
  const [first, ...others] = testDepth() === "full" ? all : all.filter(isInSample);
  if (first === undefined) throw new Error(`no case of "${about.what}" is in the sample`);
  leaveOut({ ...about, ran: 1 + others.length, of: all.length });
  return [first, ...others];
}

function leaveOut(leftOut: LeftOut): void {
  const run = process.env.SKERRY_TEST_RUN;
  if (run === undefined || leftOut.ran >= leftOut.of) return;
  new TestRun(run).addLeftOut(leftOut);
}
