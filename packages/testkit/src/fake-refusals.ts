import { ConnectError } from "@connectrpc/connect";
import { NODE_ERRORS, type NodeErrorCode, parseSandboxId } from "@skerry/wire";
import { ErrorDetailSchema, type SandboxSpec } from "@skerry/wire/node";

/** The runtimes of a fake node. */
export const RUNTIMES: readonly [string, ...string[]] = ["gvisor"];

export function rpcError(code: NodeErrorCode, message: string): ConnectError {
  return new ConnectError(message, NODE_ERRORS[code], undefined, [{ desc: ErrorDetailSchema, value: { code } }]);
}

export function checkedSpec(spec: SandboxSpec | undefined): SandboxSpec {
  if (!spec) throw rpcError("invalid_argument", "no spec");
  if (parseSandboxId(spec.sandboxId) !== spec.sandboxId) throw rpcError("invalid_argument", "no sandbox has such an id");
  if (!spec.options) throw rpcError("invalid_argument", "no options");
  return spec;
}

export function assertRuntime(name: string): void {
  if (name !== "" && !RUNTIMES.includes(name)) throw rpcError("runtime_unavailable", "there is no such runtime");
}

export function assertImageId(imageId: string): void {
  if (!/^[a-z0-9]{20}$/.test(imageId)) throw rpcError("invalid_argument", "no image has such an id");
}
