// How deep a test run goes, decided in one place: `./skerry test` takes a sample of every matrix, `./skerry test --all` all of it.
// Whatever a sample leaves out is written down, so that the summary of the run can say what was not tested.

import { type LeftOut, type TestDepth, TestRun } from "@skerry/test-runner/test-run";

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

/** The cases of a matrix that a run of this depth takes. `what` says in the plural what they are. */
export function sampleOf<Case>(what: string, all: readonly Case[], isInSample: (one: Case, index: number) => boolean) {
  return take({ what }, all, isInSample);
}

/** As `sampleOf`, for a part of a matrix that a sample may leave out as a whole: its file has to have another test. */
export function sampleOrNone<Case>(what: string, all: readonly Case[], isInSample: (one: Case) => boolean): readonly Case[] {
  if (testDepth() === "full") return all;
  const taken = all.filter(isInSample);
  leaveOut({ what, ran: taken.length, of: all.length });
  return taken;
}

const RUNTIMES = ["gvisor", "runc"] as const;
const DATABASES = ["sqlite", "postgres"] as const;

/** For a suite about something that lies above the runtimes: a sample runs it on one of them, a full run on both. */
export function runtimesFor(suite: string, inSample: (typeof RUNTIMES)[number] = "gvisor") {
  return take({ what: "runtimes", suite }, RUNTIMES, (runtime) => runtime === inSample);
}

/** For a suite that does little of its own with the database: a sample runs it on one, a full run on both. */
export function databasesFor(suite: string, inSample: (typeof DATABASES)[number]) {
  return take({ what: "databases", suite }, DATABASES, (database) => database === inSample);
}

/** A sample without any case is refused: it would test nothing. */
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
