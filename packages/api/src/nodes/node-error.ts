import { Code, ConnectError } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import type { ErrorCode } from "@skerry/wire";
import { publicError } from "../errors.ts";

const PLACE_FAILED = "Failed to place sandbox";

/** What a node's refusal to create a sandbox means for the caller. Only refusals that are about the request itself show their text. */
export function createErrorFrom(error: unknown): PlatformError<ErrorCode> {
  if (error instanceof PlatformError) return error as PlatformError<ErrorCode>;
  const failure = ConnectError.from(error);
  switch (failure.code) {
    case Code.InvalidArgument:
      return publicError("invalid_argument", failure.rawMessage, { cause: error });
    case Code.Unimplemented:
      return publicError("not_implemented", failure.rawMessage, { cause: error });
    case Code.ResourceExhausted:
      return publicError("capacity_unavailable", `${PLACE_FAILED}: no machine has room for it now`, {
        detailCode: "sandbox_capacity_unavailable",
        cause: error,
      });
    case Code.Unavailable:
      return publicError("node_unreachable", `${PLACE_FAILED}: its machine cannot be reached`, {
        detailCode: "sandbox_capacity_unavailable",
        cause: error,
      });
    case Code.DeadlineExceeded:
      return publicError("deadline_exceeded", `${PLACE_FAILED}: it did not start in time`, {
        detailCode: "sandbox_placement_timeout",
        cause: error,
      });
    default:
      return publicError("internal", `${PLACE_FAILED}: an internal error occurred`, { detailCode: "sandbox_create_failed", cause: error });
  }
}

/** What it means that a node did not finish a kill. The kill goes on being tried. */
export function killErrorFrom(error: unknown): PlatformError<ErrorCode> {
  if (error instanceof PlatformError) return error as PlatformError<ErrorCode>;
  const failure = ConnectError.from(error);
  const unreachable = failure.code === Code.Unavailable || failure.code === Code.DeadlineExceeded;
  return publicError(unreachable ? "node_unreachable" : "internal", "Error killing sandbox: it is tried again until it succeeds", {
    cause: error,
  });
}
