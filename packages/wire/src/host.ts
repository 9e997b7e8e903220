// The one parser of "which port of which sandbox": the edge uses it for every request and upgrade.
// A second, more lenient parser anywhere would be a way round the checks (a port written `02280` is refused here).

import { parseSandboxId, type SandboxId } from "./ids.ts";

export interface Target {
  readonly sandboxId: SandboxId;
  readonly port: number;
}

/** The two routing headers, as received; undefined when absent. */
export interface TargetHeaders {
  readonly sandboxId: string | undefined;
  readonly port: string | undefined;
}

/**
 * - `unnamed`: neither the host nor a header names a sandbox. A signed file URL may still lead to one.
 * - `invalid`: a sandbox is named, but wrongly.
 *
 * The message is what the client is told when there is no other way to find the sandbox.
 */
export type TargetResult =
  | { readonly kind: "target"; readonly target: Target }
  | { readonly kind: "unnamed" | "invalid"; readonly message: string };

/** `{port}-{sandboxID}`, and whatever older clients append. */
const HOST_LABEL = /^\d+-[a-z0-9]+(?:-.*)?$/i;

/** Decimal, no sign, no leading zero, 1 to 65535; undefined otherwise. */
export function parsePort(text: string): number | undefined {
  if (!/^[1-9]\d{0,4}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= 65535 ? port : undefined;
}

/**
 * Finds the target of a request. A host whose first label is `{port}-{sandboxID}` wins; on any other host both
 * `E2b-Sandbox-Id` and `E2b-Sandbox-Port` are needed.
 * Source: `docs/compatibility.md`, edge routing.
 */
export function parseTarget(host: string | undefined, headers: TargetHeaders): TargetResult {
  const label = firstLabel(host ?? "");
  if (label !== undefined && HOST_LABEL.test(label)) return fromLabel(label);
  if (headers.sandboxId === undefined && headers.port === undefined) {
    // The client may have meant to name a sandbox in the host: say what is wrong with the name.
    const meant = label?.includes("-") ? fromLabel(label) : undefined;
    return { kind: "unnamed", message: meant?.kind === "invalid" ? meant.message : "Invalid host" };
  }
  if (headers.sandboxId === undefined || headers.port === undefined) {
    return { kind: "invalid", message: "missing header" };
  }
  return fromParts(headers.sandboxId, headers.port);
}

/** The text before the first dot; undefined when there is no dot, as in `localhost` and `[::1]`. */
function firstLabel(host: string): string | undefined {
  const [name = ""] = host.split(":", 1);
  const dot = name.indexOf(".");
  return dot < 0 ? undefined : name.slice(0, dot);
}

/** Host names have no case, ids have one: everything else that is not exactly right is refused. */
function fromLabel(label: string): TargetResult {
  const [port = "", id = ""] = label.toLowerCase().split("-", 2);
  return fromParts(id, port);
}

function fromParts(id: string, portText: string): TargetResult {
  const sandboxId = parseSandboxId(id);
  if (!sandboxId) return { kind: "invalid", message: "Invalid sandbox ID" };
  const port = parsePort(portText);
  if (port === undefined) return { kind: "invalid", message: "Invalid sandbox port" };
  return { kind: "target", target: { sandboxId, port } };
}
