// When a sandbox may change its state, and to what. The one place that knows; the store makes each change a
// compare-and-set, so a decision that was made on an old state changes nothing.

import type { SandboxState } from "@skerry/store";

export type SandboxEvent =
  /** Its node answered that it is up. */
  | "started"
  /** Creating it failed, or whoever asked for it is gone. */
  | "abandon"
  | "kill"
  /** Its time is over. */
  | "expire"
  /** It ended by itself, and its node has not given everything back yet. */
  | "exit"
  /** Its node holds nothing of it. */
  | "gone";

export type Move =
  | { readonly kind: "move"; readonly to: SandboxState }
  /** The event's aim is being reached already. */
  | { readonly kind: "join" }
  | { readonly kind: "refuse" };

const refuse: Move = { kind: "refuse" };
const join: Move = { kind: "join" };
const move = (to: SandboxState): Move => ({ kind: "move", to });

export function next(state: SandboxState, event: SandboxEvent): Move {
  switch (state) {
    case "starting":
      return fromStarting(event);
    case "running":
      return fromRunning(event);
    case "killing":
      return fromKilling(event);
    case "ended":
      return refuse;
  }
}

function fromStarting(event: SandboxEvent): Move {
  switch (event) {
    case "started":
      return move("running");
    case "abandon":
    case "kill":
      return move("killing");
    // It has no end before it has started, and its node may not have heard of it yet.
    case "expire":
    case "exit":
    case "gone":
      return refuse;
  }
}

function fromRunning(event: SandboxEvent): Move {
  switch (event) {
    case "abandon":
    case "kill":
    case "expire":
    case "exit":
      return move("killing");
    case "gone":
      return move("ended");
    case "started":
      return refuse;
  }
}

function fromKilling(event: SandboxEvent): Move {
  switch (event) {
    case "abandon":
    case "kill":
    case "expire":
    case "exit":
      return join;
    case "gone":
      return move("ended");
    case "started":
      return refuse;
  }
}
