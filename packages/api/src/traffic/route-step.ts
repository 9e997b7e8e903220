// What traffic for a sandbox that has no route comes to. Pure: what is known of the sandbox decides, and what time it is.

import type { Sandbox } from "@skerry/store";

/** What the 502 for a sandbox that ended says is said for this long. */
const TELL_ENDED_MS = 24 * 3_600_000;

/**
 * A pause cuts clients' streams, and they ask for the agent's health at once to find out why: that must not undo the pause.
 * Later it is traffic like any other.
 */
const PROBED_AFTER_PAUSE_MS = 10_000;

/** Fields of RouteRefusal in spec/control/control.proto. */
export interface RouteRefusalFields {
  readonly state: "unknown" | "paused" | "ended";
  readonly endReason?: string;
  readonly endedAt?: string;
}

export type RouteStep =
  /** It may have its route by now. */
  | { readonly kind: "look_again" }
  /** It is on its way to one, whoever asks. */
  | { readonly kind: "wait" }
  /** Traffic that may do so wakes it. */
  | { readonly kind: "wake" }
  | { readonly kind: "refuse"; readonly refusal: RouteRefusalFields };

type Known = Pick<
  Sandbox,
  | "state"
  | "stateChangedAt"
  | "endAt"
  | "endedAt"
  | "endReason"
  | "pausedAt"
  | "autoPause"
  | "autoPauseMemory"
  | "autoResume"
  | "imageHasMemory"
  | "agentUnresponsive"
>;

export function routeStep(sandbox: Known | undefined, { now, isProbe }: { now: number; isProbe: boolean }): RouteStep {
  switch (sandbox?.state) {
    case undefined:
    case "starting":
      return refuse({ state: "unknown" });
    case "running":
    case "snapshotting":
      return (sandbox.endAt ?? 0) > now ? { kind: "look_again" } : timeIsOver(sandbox);
    case "resuming":
      return { kind: "wait" };
    // Whether it keeps its memory is known when it is paused.
    case "pausing":
      return sandbox.autoResume && !isProbe ? { kind: "wake" } : refuse({ state: "paused" });
    case "paused":
    case "copying":
      if (isProbe && now - (sandbox.pausedAt ?? 0) < PROBED_AFTER_PAUSE_MS) return refuse({ state: "paused" });
      return isWakeable(sandbox) ? { kind: "wake" } : refuse({ state: "paused" });
    case "killing":
    case "ended":
      return refuse(ending(sandbox, now));
  }
}

/** Waking it must bring back what was there: its memory, with an agent in it that answers. */
function isWakeable(sandbox: Known): boolean {
  return sandbox.autoResume && sandbox.imageHasMemory === true && sandbox.agentUnresponsive !== true;
}

/** Nobody has got to pausing or killing it yet. */
function timeIsOver(sandbox: Known): RouteStep {
  if (!sandbox.autoPause) return refuse(ended("timeout", sandbox.endAt));
  return sandbox.autoResume && sandbox.autoPauseMemory ? { kind: "wake" } : refuse({ state: "paused" });
}

function ending(sandbox: Known, now: number): RouteRefusalFields {
  const endedAt = sandbox.endedAt ?? sandbox.stateChangedAt;
  if (now - endedAt > TELL_ENDED_MS) return { state: "unknown" };
  return ended(sandbox.endReason, endedAt);
}

function ended(reason: string | null, at: number | null): RouteRefusalFields {
  return {
    state: "ended",
    ...(reason === null ? {} : { endReason: reason }),
    ...(at === null ? {} : { endedAt: new Date(at).toISOString() }),
  };
}

function refuse(refusal: RouteRefusalFields): RouteStep {
  return { kind: "refuse", refusal };
}
