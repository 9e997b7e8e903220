// How deep a test run goes, decided in one place: `./skerry test` takes a sample of every matrix, `./skerry test --all` all of it.
// Whatever a sample leaves out is written down, so that the summary of the run can say what was not tested.

import { type LeftOut, TestRun } from "@skerry/operator/testing";

export type TestDepth = "sample" | "full";

/** From SKERRY_TEST_DEPTH; a sample where nothing is set. Throws for any other value. */
export function testDepth(): TestDepth {
  const depth = process.env.SKERRY_TEST_DEPTH || "sample";
  if (depth !== "sample" && depth !== "full") throw new Error(`SKERRY_TEST_DEPTH is "sample" or "full", not "${depth}"`);
  return depth;
}

/** A count that grows with the depth: steps, cycles, fuzz runs. `what` says in the plural what is counted. */
export function scaled(what: string, { sample, full }: { readonly sample: number; readonly full: number }): number {
  if (testDepth() === "full") return full;
  leaveOut({ what, ran: sample, of: full });
  return sample;
}

/** The cases of a matrix that a run of this depth takes. A sample without any case is refused: it would test nothing. */
export function sampleOf<Case>(
  what: string,
  all: readonly Case[],
  isInSample: (one: Case, index: number) => boolean,
): readonly [Case, ...Case[]] {
  const [first, ...others] = testDepth() === "full" ? all : all.filter(isInSample);
  if (first === undefined) throw new Error(`no case of "${what}" is in the sample`);
  const chosen = [first, ...others] as const;
  leaveOut({ what, ran: chosen.length, of: all.length });
  return [...chosen];
}

const RUNTIMES = ["gvisor", "runc"] as const;
const DATABASES = ["sqlite", "postgres"] as const;

/** For a suite about something that lies above the runtimes: a sample runs it on one of them, a full run on both. */
export function runtimesFor(what: string, inSample: (typeof RUNTIMES)[number] = "gvisor") {
  return sampleOf(`runtimes of ${what}`, RUNTIMES, (runtime) => runtime === inSample);
}

/** For a suite that does little of its own with the database: a sample runs it on one, a full run on both. */
export function databasesFor(what: string, inSample: (typeof DATABASES)[number]) {
  return sampleOf(`databases of ${what}`, DATABASES, (database) => database === inSample);
}

function leaveOut(leftOut: LeftOut): void {
  const run = process.env.SKERRY_TEST_RUN;
  if (run === undefined || leftOut.ran >= leftOut.of) return;
  new TestRun(run).addLeftOut(leftOut);
}
