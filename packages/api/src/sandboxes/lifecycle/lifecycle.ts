// When a sandbox may change its state, and to what. The one place that knows; the store makes each change a
// compare-and-set, so a decision that was made on an old state changes nothing. docs/lifecycle.md is compared with it.

import type { SandboxState } from "@skerry/store";

/** What can happen to a sandbox, after the entry that every one begins with (`starting`). */
export const SANDBOX_EVENTS = {
  started: "Its node answered that it is up.",
  abandon: "Creating it failed, or whoever asked for it is gone.",
  kill: "Somebody asked for its end.",
  expire: "Its time is over, and it is not to be paused then.",
  exit: "It ended by itself, and its node has not given everything back yet.",
  kept: "It ended although nobody had asked for that, and its node keeps its disk.",
  gone: "Its node has neither it nor the image that it was kept in.",
  pause: "Somebody asked for it, or its time is over and it is to be paused then.",
  paused: "Its node has its image, and nothing of it runs.",
  pause_failed: "It was not paused, and runs on.",
  resume: "Somebody asked for it, or traffic came.",
  resumed: "It runs again.",
  resume_failed: "It was not resumed, and is kept as it was.",
  snapshot: "An image of it is taken while it runs: for a snapshot or for forks.",
  snapshot_over: "That image is taken, or could not be.",
  copy: "An image is made of the one that it is kept in, for forks.",
  copy_over: "That image is made, or could not be.",
} as const satisfies Readonly<Record<string, string>>;

export type SandboxEvent = keyof typeof SANDBOX_EVENTS;

export type Move =
  | { readonly kind: "move"; readonly to: SandboxState }
  /** The event's aim is being reached already. */
  | { readonly kind: "join" }
  /** Not now: after what is under way has come to its end, ask again. */
  | { readonly kind: "wait" }
  | { readonly kind: "refuse" };

/** What is not named is refused. */
const MOVES: Readonly<Record<SandboxState, Readonly<Partial<Record<SandboxEvent, SandboxState | "join" | "wait">>>>> = {
  // It has no end before it has started, and its node may not have heard of it yet.
  starting: { started: "running", abandon: "killing", kill: "killing" },
  running: {
    abandon: "killing",
    kill: "killing",
    expire: "killing",
    exit: "killing",
    kept: "paused",
    gone: "ended",
    pause: "pausing",
    snapshot: "snapshotting",
  },
  snapshotting: {
    snapshot_over: "running",
    kept: "paused",
    gone: "ended",
    abandon: "wait",
    kill: "wait",
    expire: "wait",
    exit: "wait",
    pause: "wait",
    resume: "wait",
  },
  pausing: {
    paused: "paused",
    pause_failed: "running",
    kept: "paused",
    gone: "ended",
    abandon: "wait",
    kill: "wait",
    expire: "join",
    exit: "wait",
    pause: "join",
    resume: "wait",
  },
  paused: { abandon: "killing", kill: "killing", expire: "killing", kept: "paused", gone: "ended", resume: "resuming", copy: "copying" },
  copying: { copy_over: "paused", kept: "paused", gone: "ended", abandon: "wait", kill: "wait", resume: "wait" },
  resuming: {
    resumed: "running",
    resume_failed: "paused",
    kept: "paused",
    gone: "ended",
    abandon: "wait",
    kill: "wait",
    exit: "wait",
    pause: "wait",
    resume: "join",
  },
  killing: { gone: "ended", abandon: "join", kill: "join", expire: "join", exit: "join" },
  ended: {},
};

export const SANDBOX_STATES = Object.keys(MOVES) as readonly SandboxState[];

/** States that something under way is about to leave. */
export const PASSING_STATES: ReadonlySet<SandboxState> = new Set(["starting", "snapshotting", "pausing", "copying", "resuming", "killing"]);

export function next(state: SandboxState, event: SandboxEvent): Move {
  const move = MOVES[state][event];
  switch (move) {
    case undefined:
      return { kind: "refuse" };
    case "join":
    case "wait":
      return { kind: move };
    default:
      return { kind: "move", to: move };
  }
}
