import type { LogLine } from "./log-line.ts";

const MEMORY_LOST = "memory_lost: ";

const ENDS: Readonly<Record<string, readonly [LogLine["level"], string]>> = {
  request: ["info", "Sandbox killed, as requested"],
  timeout: ["info", "Sandbox killed, because its timeout passed"],
  exited: ["warn", "Sandbox ended, because its processes ended"],
  memory: ["error", "Sandbox ended, because it ran out of memory"],
  node_lost: ["error", "Sandbox lost: its host does not have it any more"],
  create_failed: ["error", "Sandbox could not be started"],
  caller_gone: ["info", "Sandbox killed, because the caller of its create went away"],
  abandoned: ["error", "Sandbox killed, because its create was interrupted"],
};

const UNASKED_PAUSES: Readonly<Record<string, string>> = {
  exited: "Sandbox paused, because its processes ended",
  memory: "Sandbox paused, because it ran out of memory",
  disk: "Sandbox paused, because it was filling the disk of its host",
};

/** What the log of a sandbox says of a change of its state; undefined for one that callers do not see. */
export function lifecycleLine(change: {
  readonly event: string;
  readonly reason: string | null;
  /** Of a sandbox that ended. */
  readonly endReason: string | null;
  readonly now: number;
}): LogLine | undefined {
  const told = textOf(change);
  if (!told) return undefined;
  const [level, message] = told;
  return { at: change.now, level, logger: "platform", message, fields: { event: change.event }, isGuest: false };
}

function textOf({ event, reason, endReason }: { event: string; reason: string | null; endReason: string | null }) {
  const lost = reason?.startsWith(MEMORY_LOST) ? reason.slice(MEMORY_LOST.length) : undefined;
  const withMemory = (text: string): readonly [LogLine["level"], string] =>
    lost === undefined ? ["info", text] : ["warn", `${text} without its memory: ${lost}`];
  switch (event) {
    case "started":
      return withMemory("Sandbox started");
    case "resumed":
      return withMemory("Sandbox resumed");
    case "paused":
      return withMemory("Sandbox paused");
    case "snapshot_over":
      return lost === undefined ? undefined : withMemory("Sandbox continued after a snapshot");
    case "pause_failed":
      return ["warn", "Pause failed; the sandbox keeps running"] as const;
    case "resume_failed":
      return ["warn", "Resume failed; the sandbox stays paused"] as const;
    case "kept":
      return ["warn", UNASKED_PAUSES[reason ?? ""] ?? "Sandbox paused, because it ended by itself"] as const;
    case "gone":
      return ENDS[endReason ?? ""] ?? (["info", "Sandbox ended"] as const);
    default:
      return undefined;
  }
}
