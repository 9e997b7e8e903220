// What a node's failures mean for callers. Only refusals that are about the request itself show their text.

import { Code, ConnectError } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import type { ErrorCode } from "@skerry/wire";
import { publicError } from "../errors.ts";

const PLACE_FAILED = "Failed to place sandbox";

type Failure = PlatformError<ErrorCode>;

/** A create that failed. What was begun is given back. */
export function createErrorFrom(error: unknown, about: { readonly fromImage: boolean }): Failure {
  if (error instanceof PlatformError) return error as Failure;
  const failure = ConnectError.from(error);
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
export function resumeErrorFrom(error: unknown, sandboxId: string): Failure {
  if (error instanceof PlatformError && error.publicMessage !== undefined) return error as Failure;
  const failure = ConnectError.from(error);
  if (error instanceof PlatformError && error.code === "node_unreachable") {
    return publicError("node_unreachable", `Sandbox '${sandboxId}' cannot be resumed now: its machine cannot be reached`, { cause: error });
  }
  return (
    startErrorFrom(failure, error) ??
    publicError("internal", "Error resuming sandbox: it stays paused", { detailCode: "sandbox_create_failed", cause: error })
  );
}

function startErrorFrom(failure: ConnectError, error: unknown): Failure | undefined {
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

function placeError(code: ErrorCode, why: string, about: { detailCode: string; error: unknown }): Failure {
  return publicError(code, `${PLACE_FAILED}: ${why}`, { detailCode: about.detailCode, cause: about.error });
}

/** What it means that a node did not finish a kill. The kill goes on being tried. */
export function killErrorFrom(error: unknown): Failure {
  if (error instanceof PlatformError && error.publicMessage !== undefined) return error as Failure;
  return publicError(isUnreachable(error) ? "node_unreachable" : "internal", "Error killing sandbox: it is tried again until it succeeds", {
    cause: error,
  });
}

/** A pause that failed. 409 would be taken for "already paused", so it is never that. */
export function pauseErrorFrom(error: unknown, about: { readonly sandboxId: string; readonly runsOn: boolean }): Failure {
  const { code } = ConnectError.from(error);
  if (about.runsOn && (code === Code.Unavailable || code === Code.ResourceExhausted)) {
    const message = `Sandbox '${about.sandboxId}' cannot be paused now: its machine is busy or the agent inside it does not answer. It runs on`;
    return publicError("capacity_unavailable", message, { cause: error });
  }
  if (about.runsOn && code === Code.Unimplemented) return publicError("not_implemented", "pausing is not possible here", { cause: error });
  if (isUnreachable(error)) return publicError("node_unreachable", "Error pausing sandbox: its machine does not answer", { cause: error });
  return publicError("internal", "Error pausing sandbox", { cause: error });
}

/** An image that could not be taken. Nothing of it is left, or will be. */
export function snapshotErrorFrom(error: unknown, about: { readonly sandboxId: string; readonly isBack: boolean }): Failure {
  const { code, rawMessage } = ConnectError.from(error);
  if (about.isBack && (code === Code.Unavailable || code === Code.ResourceExhausted)) {
    const message = `An image of sandbox '${about.sandboxId}' cannot be taken now: its machine is busy or the agent inside it does not answer`;
    return publicError("capacity_unavailable", message, { cause: error });
  }
  if (code === Code.Unimplemented) return publicError("not_implemented", rawMessage, { cause: error });
  if (isUnreachable(error)) return publicError("node_unreachable", "Error taking an image: its machine does not answer", { cause: error });
  return publicError("internal", "Error taking an image of the sandbox", { cause: error });
}

function isUnreachable(error: unknown): boolean {
  if (error instanceof PlatformError) return error.code === "node_unreachable";
  const { code } = ConnectError.from(error);
  return code === Code.Unavailable || code === Code.DeadlineExceeded;
}
