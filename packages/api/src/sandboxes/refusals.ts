// Errors that name the state of a sandbox. Clients match on some of these texts.

import type { Sandbox, SandboxState } from "@skerry/store";
import { publicError, sandboxBusy, sandboxNotFound } from "../errors.ts";

/** The running operation, when it prevents other changes. */
export function busyState(state: SandboxState): "killed" | "paused" | "snapshotted" | "resumed" | undefined {
  switch (state) {
    case "killing":
      return "killed";
    case "pausing":
      return "paused";
    case "snapshotting":
      return "snapshotted";
    case "resuming":
      return "resumed";
    case "starting":
    case "running":
    case "paused":
    case "copying":
    case "ended":
      return undefined;
  }
}

export function conflict(message: string): Error {
  return publicError("conflict", message);
}

export function alreadyPaused(id: string): Error {
  return conflict(`Error pausing sandbox - sandbox '${id}' is already paused`);
}

/** Not 409, which clients take for "already paused". */
export function cannotPauseNow(sandbox: Sandbox): Error {
  return publicError("capacity_unavailable", `Sandbox '${sandbox.id}' cannot be paused now: it is still ${sandbox.state}`);
}

export function cannotSnapshot(sandbox: Sandbox): Error {
  if (sandbox.state === "paused" || sandbox.state === "copying" || sandbox.state === "starting") return sandboxNotFound(sandbox.id);
  if (sandbox.state === "killing") return sandboxBusy(sandbox.id, "killed");
  return conflict(`Sandbox '${sandbox.id}' cannot be snapshotted while in '${sandbox.state}' state`);
}

export function cannotFork(sandbox: Sandbox): Error {
  if (sandbox.state === "starting" || sandbox.state === "killing") return sandboxNotFound(sandbox.id);
  return conflict(`Sandbox '${sandbox.id}' cannot be forked while in '${sandbox.state}' state`);
}

export function waitedTooLong(sandbox: Sandbox): Error {
  return sandboxBusy(sandbox.id, busyState(sandbox.state) ?? "changed");
}
