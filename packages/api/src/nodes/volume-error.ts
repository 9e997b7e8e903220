// Translates the failures of calls about volumes into errors for callers.

import { Code, ConnectError } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import type { ErrorCode, NodeErrorCode } from "@skerry/wire";
import { publicError } from "../errors.ts";
import { nodeCodeOf } from "./node-error.ts";

/** What callers get for the codes of nodes that are about their request: the error, and its name in the content API. */
const ABOUT_REQUEST: Partial<Record<NodeErrorCode, readonly [ErrorCode, string]>> = {
  path_invalid: ["invalid_argument", "invalid_path"],
  invalid_argument: ["invalid_argument", "invalid_argument"],
  entry_missing: ["not_found", "path_not_found"],
  volume_missing: ["not_found", "volume_not_found"],
  entry_exists: ["conflict", "path_exists"],
  not_a_directory: ["conflict", "not_a_directory"],
  is_a_directory: ["conflict", "is_a_directory"],
  not_a_file: ["conflict", "not_a_file"],
  volume_full: ["volume_full", "volume_full"],
};

/** The error for a call about a volume, or about what is in it, that failed. */
export function volumeErrorFrom(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  const code = nodeCodeOf(error);
  const { code: rpcCode, rawMessage } = ConnectError.from(error);
  const known = code && ABOUT_REQUEST[code];
  if (known) return publicError(known[0], rawMessage, { detailCode: known[1], cause: error });
  if (code === "machine_exhausted") return publicError("capacity_unavailable", rawMessage, { cause: error });
  if (rpcCode === Code.Unavailable) {
    return publicError("node_unreachable", "The host of the volume cannot be reached. Try again later", { cause: error });
  }
  if (rpcCode === Code.DeadlineExceeded) {
    return publicError("deadline_exceeded", "The host of the volume did not answer in time", { cause: error });
  }
  return new PlatformError("internal", "a call about a volume failed", { cause: error });
}
