// Translates the failures of nodes into errors for callers. Callers see a node's own message only when it is about their request.

import { Code, ConnectError } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import type { Sandbox } from "@skerry/store";
import type { ErrorCode, NodeErrorCode } from "@skerry/wire";
import { ErrorDetailSchema } from "@skerry/wire/node";
import { publicError, sandboxNotFound } from "../errors.ts";

/** Longest part of a node's message that goes into the journal. */
const MAX_WORDS = 500;
const PLACE_FAILED = "Failed to place sandbox";

/** The error for a host that has run out of a resource; the node's message names the resource. Undefined for other failures. */
function scarcityFrom(error: unknown, about: { readonly detailCode?: string } = {}): PlatformError | undefined {
  if (nodeCodeOf(error) !== "machine_exhausted") return undefined;
  return publicError("capacity_unavailable", ConnectError.from(error).rawMessage, { ...about, cause: error });
}

/** The code that the node gave; undefined for a transport failure. A code of a later version is not in the union and matches nothing. */
export function nodeCodeOf(error: unknown): NodeErrorCode | undefined {
  return ConnectError.from(error).findDetails(ErrorDetailSchema)[0]?.code as NodeErrorCode | undefined;
}

/**
 * Whether a pause failed because of the guest, and not because the host is busy, full or unreachable. A failure that the node cannot explain
 * counts as the guest's, because a guest may have caused it.
 */
export function isGuestsDoing(error: unknown): boolean {
  if (!(error instanceof PlatformError)) return false;
  const code = nodeCodeOf(error.cause);
  return (
    code === "state_not_savable" || code === "guest_unresponsive" || (error.code === "internal" && error.cause instanceof ConnectError)
  );
}

/** The node's own message, shortened. */
export function nodesWords(error: unknown): string {
  return ConnectError.from(error instanceof PlatformError ? error.cause : error).rawMessage.slice(0, MAX_WORDS);
}

/** The error for a create that failed. The node releases what it took. */
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

/** Whether the image is missing or unreadable, so that a retry cannot succeed. */
function isImageRefusal(code: Code): boolean {
  return code === Code.NotFound || code === Code.DataLoss || code === Code.FailedPrecondition;
}

/** The error for a resume that failed. The sandbox stays paused, or its state is still being determined. */
export function resumeErrorFrom(error: unknown, sandboxId: string): PlatformError {
  if (error instanceof PlatformError && error.publicMessage !== undefined) return error;
  const failure = ConnectError.from(error);
  if (error instanceof PlatformError && error.code === "node_unreachable") {
    return publicError("node_unreachable", `Sandbox '${sandboxId}' cannot be resumed now: its host cannot be reached. Try again later`, {
      cause: error,
    });
  }
  if (failure.code === Code.DataLoss) {
    const message = `Sandbox '${sandboxId}' cannot be resumed: the record of its image is damaged. Nothing was deleted; the log of its host names the file`;
    return publicError("internal", message, { cause: error });
  }
  return (
    scarcityFrom(error, { detailCode: "sandbox_capacity_unavailable" }) ??
    startErrorFrom(failure, error) ??
    publicError("internal", "Error resuming sandbox: it stays paused. Try again", { detailCode: "sandbox_create_failed", cause: error })
  );
}

function startErrorFrom(failure: ConnectError, error: unknown): PlatformError | undefined {
  switch (failure.code) {
    case Code.InvalidArgument:
      return publicError("invalid_argument", failure.rawMessage, { cause: error });
    case Code.Unimplemented:
      return publicError("not_implemented", failure.rawMessage, { cause: error });
    case Code.ResourceExhausted:
      return placeError("capacity_unavailable", "no host has free capacity now. Try again later", {
        detailCode: "sandbox_capacity_unavailable",
        error,
      });
    case Code.Unavailable:
      return placeError("node_unreachable", "its host cannot be reached. Try again later", {
        detailCode: "sandbox_capacity_unavailable",
        error,
      });
    case Code.DeadlineExceeded:
      return placeError("deadline_exceeded", "the sandbox did not start in time", { detailCode: "sandbox_placement_timeout", error });
    default:
      return undefined;
  }
}

function placeError(code: ErrorCode, why: string, about: { detailCode: string; error: unknown }): PlatformError {
  return publicError(code, `${PLACE_FAILED}: ${why}`, { detailCode: about.detailCode, cause: about.error });
}

/** The error for a kill that a node did not finish. The API retries the kill. */
export function killErrorFrom(error: unknown): PlatformError {
  if (error instanceof PlatformError && error.publicMessage !== undefined) return error;
  const message = "Error killing sandbox: the platform retries until it succeeds";
  return scarcityFrom(error) ?? publicError(isUnreachable(error) ? "node_unreachable" : "internal", message, { cause: error });
}

/** The error for a change of options that failed. The former ones count. */
export function changeErrorFrom(error: unknown, sandboxId: string): PlatformError {
  if (error instanceof PlatformError && error.publicMessage !== undefined) return error;
  if (nodeCodeOf(error) === "sandbox_gone") return sandboxNotFound(sandboxId);
  if (nodeCodeOf(error) === "bandwidth_unsupported")
    return publicError("not_implemented", ConnectError.from(error).rawMessage, { cause: error });
  const message = `Error changing the network of sandbox '${sandboxId}': its former rules hold`;
  return scarcityFrom(error) ?? publicError(isUnreachable(error) ? "node_unreachable" : "internal", message, { cause: error });
}

/** The error for a pause that failed. It is never 409, which clients read as "already paused". */
export function pauseErrorFrom(error: unknown, about: { readonly sandboxId: string; readonly runsOn: boolean }): PlatformError {
  const { code, rawMessage } = ConnectError.from(error);
  if (nodeCodeOf(error) === "state_not_savable") {
    const mend = "The sandbox keeps running. Let the process close it, or pause with memory=false";
    return notSavable(`Sandbox '${about.sandboxId}' cannot be paused with its memory: ${rawMessage}. ${mend}`, error);
  }
  const scarcity = about.runsOn ? scarcityFrom(error) : undefined;
  if (scarcity) return scarcity;
  if (about.runsOn && (code === Code.Unavailable || code === Code.ResourceExhausted)) {
    const message = `Sandbox '${about.sandboxId}' cannot be paused now: its host is busy or its agent does not answer. The sandbox keeps running`;
    return publicError("capacity_unavailable", message, { cause: error });
  }
  if (about.runsOn && code === Code.Unimplemented)
    return publicError("not_implemented", "this runtime cannot pause sandboxes", { cause: error });
  if (isUnreachable(error)) return publicError("node_unreachable", "Error pausing sandbox: its host does not answer", { cause: error });
  return publicError("internal", "Error pausing sandbox", { cause: error });
}

/** The error for a snapshot or a fork whose image could not be taken. What was written of the image is deleted. */
export function snapshotErrorFrom(
  error: unknown,
  about: { readonly sandboxId: string; readonly isBack: boolean; readonly after: Pick<Sandbox, "state" | "pauseReason"> | undefined },
): PlatformError {
  const { code, rawMessage } = ConnectError.from(error);
  if (about.after?.state === "paused" && about.after.pauseReason !== null) {
    const message = `No image of sandbox '${about.sandboxId}' was taken: its processes ended meanwhile, and it is paused now`;
    return publicError("internal", message, { cause: error });
  }
  const scarcity = about.isBack ? scarcityFrom(error) : undefined;
  if (scarcity) return scarcity;
  if (about.isBack && (code === Code.Unavailable || code === Code.ResourceExhausted)) {
    const message = `An image of sandbox '${about.sandboxId}' cannot be taken now: its host is busy or its agent does not answer`;
    return publicError("capacity_unavailable", message, { cause: error });
  }
  if (nodeCodeOf(error) === "state_not_savable") {
    const message = `An image of sandbox '${about.sandboxId}' cannot be taken: ${rawMessage}. The sandbox keeps running. Let the process close it, and try again`;
    return notSavable(message, error);
  }
  if (code === Code.Unimplemented) return publicError("not_implemented", rawMessage, { cause: error });
  if (isUnreachable(error))
    return publicError("node_unreachable", "Error taking an image: the host of the sandbox does not answer", { cause: error });
  return publicError("internal", "Error taking an image of the sandbox", { cause: error });
}

/** The error for state that cannot be saved. The node's message names what is open in the sandbox. */
function notSavable(message: string, cause: unknown): PlatformError {
  return publicError("state_not_savable", message, { detailCode: "sandbox_state_not_savable", cause });
}

function isUnreachable(error: unknown): boolean {
  if (error instanceof PlatformError) return error.code === "node_unreachable";
  const { code } = ConnectError.from(error);
  return code === Code.Unavailable || code === Code.DeadlineExceeded;
}
