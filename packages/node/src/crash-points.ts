// Points at which a test can kill this daemon (tests/fault/crash-points-*.test.ts, which fail for a point that none of them reaches).

import { reachCrashPoint } from "@skerry/base";

export const CRASH_POINTS = [
  // Every start of a container: create, fork, resume, filling the pool, continuing after a snapshot.
  "start.folder-made",
  "start.recorded",
  "start.area-made",
  "start.mounted",
  "start.volumes-mounted",
  "start.started",
  "start.recorded-started",
  "start.agent-ready",
  "start.recorded-ready",
  "claim.agent-told",
  "claim.recorded",
  // The options of a running sandbox change.
  "options.applied",
  "options.recorded",
  // Writing an image: pause, snapshot, the image of a template.
  "write.recorded",
  "write.folder-made",
  "write.frozen",
  "write.checkpointed",
  "write.sealed",
  "write.layer-copied",
  "write.committed",
  "write.thawed",
  "pause.recorded",
  "pause.given-back",
  // Keeping a sandbox that ended without a request.
  "keep.committed",
  "keep.recorded",
  "resume.image-discarded",
  "snapshot.area-prepared",
  "snapshot.traffic-held",
  "snapshot.predecessor-ended",
  "snapshot.readdressed",
  "snapshot.successor-recorded",
  "snapshot.predecessor-released",
  "snapshot.memory-dropped",
  "share.root-mounted",
  "share.area-copied",
  "share.source-committed",
  "share.memory-linked",
  "share.committed",
  "discard.moved",
  "discard.collected",
  "layer.record-removed",
  "layer.tree-moved",
  "release.recorded",
  "release.processes-ended",
  "release.unmounted",
  "release.folder-moved",
  "release.slot-released",
  "release.collected",
  "volume.made",
  "volume.created",
  "volume.deleted",
  "volume.removed",
  "volume.file-staged",
  // The sandbox of a build step becomes a layer.
  "build.processes-ended",
  "build.unmounted",
  "build.staged",
  "build.adopted",
  // The start command of a template was run, and the image is not written yet.
  "build.template-started",
  // An area of a snapshot was copied, to become a layer.
  "build.area-copied",
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number];

export function crashPoint(name: CrashPoint): void {
  reachCrashPoint(name);
}
