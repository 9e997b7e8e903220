// What a node's failures mean for callers. Only refusals that are about the request itself show their text.

import { Code, ConnectError } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import type { Sandbox } from "@skerry/store";
import type { ErrorCode, NodeErrorCode } from "@skerry/wire";
import { ErrorDetailSchema } from "@skerry/wire/node";
import { publicError } from "../errors.ts";

const MAX_WORDS = 500;
const PLACE_FAILED = "Failed to place sandbox";

/** The machine has run out of something, and says of what. */
function scarcityFrom(error: unknown, about: { readonly detailCode?: string } = {}): PlatformError | undefined {
  if (nodeCodeOf(error) !== "machine_exhausted") return undefined;
  return publicError("capacity_unavailable", ConnectError.from(error).rawMessage, { ...about, cause: error });
}

/** The code that the node gave; undefined for a transport failure. A code of a later version is none of the union, and matches nothing. */
function nodeCodeOf(error: unknown): NodeErrorCode | undefined {
  return ConnectError.from(error).findDetails(ErrorDetailSchema)[0]?.code as NodeErrorCode | undefined;
}

/**
 * Whether a pause that failed with this failed for what is in the sandbox, and not because its machine is busy, full or out of reach.
 * What a node can't explain counts as well: a guest may have brought that about.
 */
export function isGuestsDoing(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
  const code = nodeCodeOf(error.cause);
  return (
    code === "state_not_savable" || code === "guest_unresponsive" || (error.code === "internal" && error.cause instanceof ConnectError)
  );
}

/** The node's own words, bounded. */
export function nodesWords(error: unknown): string {
  return ConnectError.from(error instanceof PlatformError ? error.cause : error).rawMessage.slice(0, MAX_WORDS);
}

/** A create that failed. What was begun is given back. */
export function createErrorFrom(error: unknown, about: { readonly fromImage: boolean }): PlatformError {
  if (error instanceof PlatformError) return error;
  const failure = ConnectError.from(error);
  const scarcity = scarcityFrom(error, { detailCode: "sandbox_capacity_unavailable" });
  if (scarcity) return scarcity;
  if (about.fromImage && isImageRefusal(failure.code)) {
    return publicError("internal", `${PLACE_FAILED}: its snapshot cannot be started`, {
      detailCode: "sandbox_create_refused",
      cause: error,
    });
  }
  return (
    startErrorFrom(failure, error) ?? placeError("internal", "an internal error occurred", { detailCode: "sandbox_create_failed", error })
  );
}

/** The image is not there or cannot be read: trying again does not help. */
function isImageRefusal(code: Code): boolean {
  return code === Code.NotFound || code === Code.DataLoss || code === Code.FailedPrecondition;
}

/** A resume that failed. The sandbox is paused as it was, or its state is being found out. */
export function resumeErrorFrom(error: unknown, sandboxId: string): PlatformError {
  if (error instanceof PlatformError && error.publicMessage !== undefined) return error;
  const failure = ConnectError.from(error);
  if (error instanceof PlatformError && error.code === "node_unreachable") {
    return publicError("node_unreachable", `Sandbox '${sandboxId}' cannot be resumed now: its machine cannot be reached`, { cause: error });
  }
  if (failure.code === Code.DataLoss) {
    const message = `Sandbox '${sandboxId}' cannot be resumed: the record of what it is kept in is damaged. Nothing of it was deleted; the operator finds it in the log of its machine`;
    return publicError("internal", message, { cause: error });
  }
  return (
    scarcityFrom(error, { detailCode: "sandbox_capacity_unavailable" }) ??
    startErrorFrom(failure, error) ??
    publicError("internal", "Error resuming sandbox: it stays paused", { detailCode: "sandbox_create_failed", cause: error })
  );
}

function startErrorFrom(failure: ConnectError, error: unknown): PlatformError | undefined {
  switch (failure.code) {
    case Code.InvalidArgument:
      return publicError("invalid_argument", failure.rawMessage, { cause: error });
    case Code.Unimplemented:
      return publicError("not_implemented", failure.rawMessage, { cause: error });
    case Code.ResourceExhausted:
      return placeError("capacity_unavailable", "no machine has room for it now", { detailCode: "sandbox_capacity_unavailable", error });
    case Code.Unavailable:
      return placeError("node_unreachable", "its machine cannot be reached", { detailCode: "sandbox_capacity_unavailable", error });
    case Code.DeadlineExceeded:
      return placeError("deadline_exceeded", "it did not start in time", { detailCode: "sandbox_placement_timeout", error });
    default:
      return undefined;
  }
}

function placeError(code: ErrorCode, why: string, about: { detailCode: string; error: unknown }): PlatformError {
  return publicError(code, `${PLACE_FAILED}: ${why}`, { detailCode: about.detailCode, cause: about.error });
}

/** What it means that a node did not finish a kill. The kill goes on being tried. */
export function killErrorFrom(error: unknown): PlatformError {
  if (error instanceof PlatformError && error.publicMessage !== undefined) return error;
  const message = "Error killing sandbox: it is tried again until it succeeds";
  return scarcityFrom(error) ?? publicError(isUnreachable(error) ? "node_unreachable" : "internal", message, { cause: error });
}

/** A pause that failed. 409 would be taken for "already paused", so it is never that. */
export function pauseErrorFrom(error: unknown, about: { readonly sandboxId: string; readonly runsOn: boolean }): PlatformError {
  const { code, rawMessage } = ConnectError.from(error);
  if (nodeCodeOf(error) === "state_not_savable") {
    const mend = "It runs on: let the process close that, or pause it with memory=false";
    return notSavable(`Sandbox '${about.sandboxId}' cannot be paused with its memory: ${rawMessage}. ${mend}`, error);
  }
  const scarcity = about.runsOn ? scarcityFrom(error) : undefined;
  if (scarcity) return scarcity;
  if (about.runsOn && (code === Code.Unavailable || code === Code.ResourceExhausted)) {
    const message = `Sandbox '${about.sandboxId}' cannot be paused now: its machine is busy or the agent inside it does not answer. It runs on`;
    return publicError("capacity_unavailable", message, { cause: error });
  }
  if (about.runsOn && code === Code.Unimplemented) return publicError("not_implemented", "pausing is not possible here", { cause: error });
  if (isUnreachable(error)) return publicError("node_unreachable", "Error pausing sandbox: its machine does not answer", { cause: error });
  return publicError("internal", "Error pausing sandbox", { cause: error });
}

/** An image that could not be taken. Nothing of it is left, or will be. */
export function snapshotErrorFrom(
  error: unknown,
  about: { readonly sandboxId: string; readonly isBack: boolean; readonly after: Pick<Sandbox, "state" | "pauseReason"> | undefined },
): PlatformError {
  const { code, rawMessage } = ConnectError.from(error);
  if (about.after?.state === "paused" && about.after.pauseReason !== null) {
    const message = `No image of sandbox '${about.sandboxId}' was taken: it ended by itself meanwhile, and is paused now`;
    return publicError("internal", message, { cause: error });
  }
  const scarcity = about.isBack ? scarcityFrom(error) : undefined;
  if (scarcity) return scarcity;
  if (about.isBack && (code === Code.Unavailable || code === Code.ResourceExhausted)) {
    const message = `An image of sandbox '${about.sandboxId}' cannot be taken now: its machine is busy or the agent inside it does not answer`;
    return publicError("capacity_unavailable", message, { cause: error });
  }
  if (nodeCodeOf(error) === "state_not_savable") {
    const message = `An image of sandbox '${about.sandboxId}' cannot be taken: ${rawMessage}. It runs on: let the process close that, and try again`;
    return notSavable(message, error);
  }
  if (code === Code.Unimplemented) return publicError("not_implemented", rawMessage, { cause: error });
  if (isUnreachable(error)) return publicError("node_unreachable", "Error taking an image: its machine does not answer", { cause: error });
  return publicError("internal", "Error taking an image of the sandbox", { cause: error });
}

/** What is open in the sandbox does not allow it: its node says what. */
function notSavable(message: string, cause: unknown): PlatformError {
  return publicError("state_not_savable", message, { detailCode: "sandbox_state_not_savable", cause });
}

function isUnreachable(error: unknown): boolean {
  if (error instanceof PlatformError) return error.code === "node_unreachable";
  const { code } = ConnectError.from(error);
  return code === Code.Unavailable || code === Code.DeadlineExceeded;
}
