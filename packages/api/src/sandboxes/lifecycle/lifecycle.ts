// The state machine of a sandbox: which event leads from which state to which. Only this module knows it. The store makes each change a
// compare-and-set, so a decision that was based on an old state changes nothing. A test compares docs/lifecycle.md with this module.

import type { SandboxState } from "@skerry/store";

/** The events, and what each one means. Every sandbox begins with a row in the state `starting`. */
export const SANDBOX_EVENTS = {
  started: "The node reported that the sandbox is up.",
  abandon: "The create failed, or its caller disconnected.",
  kill: "A caller requested the kill.",
  expire: "The timeout passed, and the sandbox is not to be paused then.",
  exit: "The sandbox ended by itself, and its node has not released everything yet.",
  kept: "The sandbox ended without a request, and its node keeps its disk.",
  gone: "The node has neither the sandbox nor its image.",
  pause: "A caller requested a pause, or the timeout passed and the sandbox is to be paused then.",
  paused: "The node has the image, and nothing of the sandbox runs.",
  pause_failed: "The pause failed, and the sandbox continues to run.",
  resume: "A caller requested a resume, or traffic arrived.",
  resumed: "The sandbox runs again.",
  resume_failed: "The resume failed, and the sandbox stays paused.",
  snapshot: "An image of the running sandbox is being taken, for a snapshot or for forks.",
  snapshot_over: "That image is complete, or could not be taken.",
  copy: "An image is being made from the image of the paused sandbox, for forks.",
  copy_over: "That image is complete, or could not be made.",
} as const satisfies Readonly<Record<string, string>>;

export type SandboxEvent = keyof typeof SANDBOX_EVENTS;

export type Move =
  | { readonly kind: "move"; readonly to: SandboxState }
  /** An operation with the same result is running: wait for it. */
  | { readonly kind: "join" }
  /** Another operation is running: wait for its end, then ask again. */
  | { readonly kind: "wait" }
  | { readonly kind: "refuse" };

/** Events that are not listed for a state are refused. */
const MOVES: Readonly<Record<SandboxState, Readonly<Partial<Record<SandboxEvent, SandboxState | "join" | "wait">>>>> = {
  // `expire` and `exit` are missing: the timeout begins with the start, and the node may not know the sandbox yet.
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

/** States that a running operation is about to leave. */
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
