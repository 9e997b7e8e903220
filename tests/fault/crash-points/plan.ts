// The plan, as data: which operation of a node is killed at which of its crash points.

import { CRASH_POINTS, type CrashPoint } from "@skerry/node/crash-points";
import { sampleOf } from "@skerry/testkit/depth";

export type Runtime = "gvisor" | "runc";

export interface CrashCase {
  readonly runtime: Runtime;
  readonly operation: Operation;
  readonly point: CrashPoint;
}

const START: readonly CrashPoint[] = [
  "start.folder-made",
  "start.recorded",
  "start.area-made",
  "start.mounted",
  "start.volumes-mounted",
  "start.started",
  "start.recorded-started",
];
const READY: readonly CrashPoint[] = ["start.agent-ready", "start.recorded-ready"];
const RELEASE: readonly CrashPoint[] = [
  "release.recorded",
  "release.processes-ended",
  "release.unmounted",
  "release.folder-moved",
  "release.slot-released",
  "release.collected",
];
const DISCARD: readonly CrashPoint[] = ["discard.moved", "discard.collected"];
const WRITE: readonly CrashPoint[] = ["write.recorded", "write.folder-made", "write.frozen", "write.layer-copied", "write.committed"];
const WRITE_MEMORY: readonly CrashPoint[] = ["write.checkpointed", "write.sealed"];

/** Cheapest operations first: a sample reaches each point with the first operation that has it. */
const OPERATIONS = [
  "kill",
  "create a volume",
  "delete a volume",
  "write to a volume",
  "create",
  "change the options",
  "delete an image",
  "delete a layer",
  "end by itself",
  "fork",
  "pause",
  "resume",
  "snapshot of a paused one",
  "snapshot of the disk",
  "snapshot",
  "claim",
  "fill the pool",
  "build",
  "build on a snapshot",
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** `gvisor` and `runc` are the points that only this runtime has. */
const PLAN: Readonly<Record<Operation, { both: readonly CrashPoint[]; gvisor?: readonly CrashPoint[]; runc?: readonly CrashPoint[] }>> = {
  create: { both: [...START, ...READY] },
  kill: { both: RELEASE },
  "create a volume": { both: ["volume.made", "volume.created"] },
  "delete a volume": { both: ["volume.deleted", "volume.removed"] },
  "write to a volume": { both: ["volume.file-staged"] },
  pause: { both: [...WRITE, "pause.recorded", "pause.given-back"], gvisor: [...WRITE_MEMORY, ...RELEASE] },
  resume: { both: [...START, ...READY, ...DISCARD, "resume.image-discarded"] },
  snapshot: {
    both: WRITE,
    gvisor: [
      ...WRITE_MEMORY,
      ...START,
      "snapshot.area-prepared",
      "snapshot.traffic-held",
      "snapshot.predecessor-ended",
      "snapshot.readdressed",
      "snapshot.successor-recorded",
      "snapshot.predecessor-released",
      "release.processes-ended",
      "release.folder-moved",
    ],
    runc: ["write.thawed"],
  },
  "snapshot of the disk": { both: [], gvisor: ["write.committed", "snapshot.successor-recorded", "snapshot.memory-dropped"] },
  "snapshot of a paused one": {
    both: ["share.root-mounted", "share.source-committed", "share.memory-linked", "share.committed"],
    runc: ["share.area-copied"],
  },
  fork: { both: [], gvisor: [...START, ...READY], runc: ["start.mounted", "start.recorded-ready"] },
  "change the options": { both: ["options.applied", "options.recorded"] },
  "delete an image": { both: DISCARD },
  "delete a layer": { both: ["layer.record-removed", "layer.tree-moved"] },
  "end by itself": { both: ["keep.committed", "keep.recorded"] },
  "fill the pool": {
    both: ["start.mounted", "start.recorded-started"],
    gvisor: ["write.frozen", "write.checkpointed", "write.committed", "release.recorded"],
  },
  claim: { both: ["claim.agent-told", "claim.recorded"] },
  build: {
    both: [
      "start.mounted",
      "start.agent-ready",
      "build.processes-ended",
      "build.unmounted",
      "build.staged",
      "build.adopted",
      "release.processes-ended",
      "build.template-started",
    ],
    gvisor: ["write.checkpointed", "write.committed"],
  },
  "build on a snapshot": { both: ["build.area-copied"] },
};

export const CRASH_CASES: readonly CrashCase[] = OPERATIONS.flatMap((operation) =>
  (["gvisor", "runc"] as const).flatMap((runtime) =>
    [...PLAN[operation].both, ...(PLAN[operation][runtime] ?? [])].map((point) => ({ runtime, operation, point })),
  ),
);

/** Each point once, with its cheapest operation. If both runtimes have it, they take turns. */
const SAMPLE: ReadonlySet<CrashCase> = new Set([
  ...CRASH_POINTS.flatMap((point, index) => {
    const operation = CRASH_CASES.find((one) => one.point === point)?.operation;
    const cases = CRASH_CASES.filter((one) => one.point === point && one.operation === operation);
    return cases[index % cases.length] ?? [];
  }),
  // Every operation needs a case. Filling the pool has no point of its own.
  ...OPERATIONS.flatMap((operation) => CRASH_CASES.find((one) => one.operation === operation) ?? []),
]);

/** The cases of these operations on this runtime, at the depth of this run. `what` names the group in the report of a sample. */
export function casesOf(what: string, runtime: Runtime, operations: readonly Operation[]): readonly CrashCase[] {
  const all = CRASH_CASES.filter((one) => one.runtime === runtime && operations.includes(one.operation));
  return sampleOf(`crash points of ${what} on ${runtime}`, all, (one) => SAMPLE.has(one));
}
