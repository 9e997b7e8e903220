// A failed operation as an error of the node's RPC.

import { ConnectError } from "@connectrpc/connect";
import { PlatformError, type PlatformErrorCode } from "@skerry/base";
import { NODE_ERRORS, type NodeErrorCode } from "@skerry/wire";
import { ErrorDetailSchema } from "@skerry/wire/node";
import type { NodeConfig } from "../config.ts";
import { scarcityOf } from "./scarcity.privileged.ts";

/** Error codes that have another name on the wire. A code that is neither here nor in NODE_ERRORS becomes "internal". */
const WIRE_CODES: Partial<Record<PlatformErrorCode, NodeErrorCode>> = {
  layer_digest_invalid: "invalid_argument",
  disk_space_unavailable: "machine_exhausted",
  memory_unavailable: "machine_exhausted",
  layer_chain_too_long: "machine_exhausted",
  root_read_only: "machine_exhausted",
  links_not_kept: "machine_exhausted",
  network_pool_empty: "capacity_unavailable",
};

export async function encodeErrors<T>(config: NodeConfig, work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw encodeError(config, error);
  }
}

export function encodeError({ dir }: NodeConfig, error: unknown): ConnectError {
  const scarcity = scarcityOf(error, dir);
  if (scarcity !== undefined) return rpcError("machine_exhausted", scarcity, error);
  if (!(error instanceof PlatformError)) return rpcError("internal", "an operation failed", error);
  return rpcError(wireCodeOf(error.code), error.publicMessage ?? error.message, error);
}

export function rpcError(code: NodeErrorCode, message: string, cause?: unknown): ConnectError {
  return new ConnectError(message, NODE_ERRORS[code], undefined, [{ desc: ErrorDetailSchema, value: { code } }], cause);
}

function wireCodeOf(code: PlatformErrorCode): NodeErrorCode {
  return WIRE_CODES[code] ?? (Object.hasOwn(NODE_ERRORS, code) ? (code as NodeErrorCode) : "internal");
}
