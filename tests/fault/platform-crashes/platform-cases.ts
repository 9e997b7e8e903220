// The cases, as data: which operation of the public API kills a platform at which crash point. They derive from the plan of the node's
// operations (../crash-points/plan.ts), in which every new point needs a line.

import type { CrashPoint } from "@skerry/node/crash-points";
import { sampleOrNone } from "@skerry/testkit/depth";
import { CRASH_CASES, type Operation, type Runtime } from "../crash-points/plan.ts";

/** A request of a client, or an event of a sandbox, and the operation of the node that it leads to. */
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
  "change of its network": "change the options",
  "death of its runtime": "end by itself",
  "creation of a volume": "create a volume",
  "deletion of a volume": "delete a volume",
  "upload to a volume": "write to a volume",
} as const satisfies Record<string, Operation>;
export type ApiOperation = keyof typeof API_OPERATIONS;

export interface PlatformCase {
  readonly operation: ApiOperation;
  readonly point: CrashPoint;
}

/** One case of each operation that keeps memory, and of a change of a running sandbox, at the most critical points. */
const SAMPLE: readonly PlatformCase[] = [
  { operation: "resume", point: "start.started" },
  { operation: "snapshot", point: "snapshot.predecessor-ended" },
  { operation: "fork", point: "snapshot.successor-recorded" },
  { operation: "change of its network", point: "options.applied" },
];

/**
 * The API removes layers in its periodic rounds, minutes after the last build that used them was deleted. It has nodes build in the background.
 * `../layer-collection.test.ts` and `../builds.test.ts` kill a node or a platform then; `../crash-points-*.test.ts` kill a node at each point.
 */
const IN_THE_BACKGROUND: readonly Operation[] = ["delete a layer", "build", "build on a snapshot"];

/** Operations of the node that neither a request nor background work reaches. A test fails if there is one. */
export function unreachedOperations(): Operation[] {
  const reached: ReadonlySet<Operation> = new Set([...Object.values(API_OPERATIONS), ...IN_THE_BACKGROUND]);
  return [...new Set(CRASH_CASES.map(({ operation }) => operation))].filter((operation) => !reached.has(operation));
}

/** The crash points of an operation. */
export function pointsOf(runtime: Runtime, operation: ApiOperation): CrashPoint[] {
  return CRASH_CASES.filter((one) => one.runtime === runtime && one.operation === API_OPERATIONS[operation]).map(({ point }) => point);
}

/** All cases of these operations in a full run. In a sample, those that are in SAMPLE, which may be none. */
export function platformCases(runtime: Runtime, operations: readonly ApiOperation[]): readonly PlatformCase[] {
  const all = operations.flatMap((operation) => pointsOf(runtime, operation).map((point) => ({ operation, point })));
  const sampled = (one: PlatformCase) =>
    runtime === "gvisor" && SAMPLE.some(({ operation, point }) => operation === one.operation && point === one.point);
  return sampleOrNone(`crash points of a platform on ${runtime} (${operations.join(", ")})`, all, sampled);
}
