// Which operation of the public API ends a platform at which crash point, as data: made from the plan of the node's operations
// (../crash-points/plan.ts), where a new point has to have a line.

import type { CrashPoint } from "@skerry/node/crash-points";
import { sampleOrNone } from "@skerry/testkit/depth";
import { CRASH_CASES, type Operation, type Runtime } from "../crash-points/plan.ts";

/** What a caller asks for, or what happens to a sandbox, and the operation of the node that this leads to. */
const API_OPERATIONS = {
  create: "create",
  "create from a snapshot": "fork",
  "create from the pool": "claim",
  "filling of the pool": "fill the pool",
  pause: "pause",
  resume: "resume",
  snapshot: "snapshot",
  "snapshot of the disk": "snapshot of the disk",
  fork: "snapshot",
  "fork of a paused one": "snapshot of a paused one",
  kill: "kill",
  "kill of a paused one": "delete an image",
  "deletion of a snapshot": "delete an image",
  "death of its runtime": "end by itself",
} as const satisfies Record<string, Operation>;
export type ApiOperation = keyof typeof API_OPERATIONS;

export interface PlatformCase {
  readonly operation: ApiOperation;
  readonly point: CrashPoint;
}

/** One of each of those that carry memory, at the points where most is at stake. */
const SAMPLE: readonly PlatformCase[] = [
  { operation: "resume", point: "start.started" },
  { operation: "snapshot", point: "snapshot.predecessor-ended" },
  { operation: "fork", point: "snapshot.successor-recorded" },
];

/**
 * No request leads to these. The API removes layers in its periodic rounds, minutes after the last build that used them was deleted;
 * `../crash-points/node-crashes.ts` and `../layer-collection.test.ts` kill the node there.
 */
const PERIODIC: readonly Operation[] = ["delete a layer"];

/** Operations of the node that neither a request nor a periodic round reaches. A test fails for one. */
export function unreachedOperations(): Operation[] {
  const reached: ReadonlySet<Operation> = new Set([...Object.values(API_OPERATIONS), ...PERIODIC]);
  return [...new Set(CRASH_CASES.map(({ operation }) => operation))].filter((operation) => !reached.has(operation));
}

/** The crash points that an operation reaches. */
export function pointsOf(runtime: Runtime, operation: ApiOperation): CrashPoint[] {
  return CRASH_CASES.filter((one) => one.runtime === runtime && one.operation === API_OPERATIONS[operation]).map(({ point }) => point);
}

/** Every case of these operations in a full run. In a sample, those of SAMPLE that are among them, which may be none. */
export function platformCases(runtime: Runtime, operations: readonly ApiOperation[]): readonly PlatformCase[] {
  const all = operations.flatMap((operation) => pointsOf(runtime, operation).map((point) => ({ operation, point })));
  const sampled = (one: PlatformCase) =>
    runtime === "gvisor" && SAMPLE.some(({ operation, point }) => operation === one.operation && point === one.point);
  return sampleOrNone(`crash points of a platform on ${runtime} (${operations.join(", ")})`, all, sampled);
}
