// Decides how to handle traffic for a sandbox without a route: wait, resume, or refuse. A pure function of the sandbox and the time.

import type { Sandbox } from "@skerry/store";

/** How long a 502 explains why a sandbox ended. */
const TELL_ENDED_MS = 24 * 3_600_000;

/**
 * How long after a pause a health check of the agent does not resume the sandbox. A pause closes the clients' streams, and clients then check
 * the agent's health at once: that must not undo the pause.
 */
const PROBED_AFTER_PAUSE_MS = 10_000;

/** The fields of RouteRefusal in spec/control/control.proto. */
export interface RouteRefusalFields {
  readonly state: "unknown" | "paused" | "ended";
  readonly endReason?: string;
  readonly endedAt?: string;
}

export type RouteStep =
  /** The sandbox may have a route by now. */
  | { readonly kind: "look_again" }
  /** An operation is running after which the sandbox may have a route. */
  | { readonly kind: "wait" }
  /** Resume the sandbox, if this traffic may do so. */
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
    // The end of the pause decides whether the sandbox keeps its memory, and so whether traffic may resume it.
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

/** Traffic resumes a sandbox only with its memory, and only when its agent answered at the pause. */
function isWakeable(sandbox: Known): boolean {
  return sandbox.autoResume && sandbox.imageHasMemory === true && sandbox.agentUnresponsive !== true;
}

/** The timeout has passed, and the scan has not paused or killed the sandbox yet. */
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
