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

export type TargetResult = { readonly kind: "target"; readonly target: Target } | { readonly kind: "invalid"; readonly message: string };

const HOST_LABEL = /^(\d+)-([a-z0-9]+)(?:-[a-z0-9]+)*$/i;

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
  const label = (host ?? "").split(":")[0]?.split(".") ?? [];
  const match = label.length > 1 ? HOST_LABEL.exec(label[0] ?? "") : null;
  if (match) return fromParts(match[2]?.toLowerCase() ?? "", match[1] ?? "");
  if (headers.sandboxId === undefined && headers.port === undefined) {
    return { kind: "invalid", message: "Invalid host" };
  }
  if (headers.sandboxId === undefined || headers.port === undefined) {
    return { kind: "invalid", message: "missing header" };
  }
  return fromParts(headers.sandboxId, headers.port);
}

function fromParts(id: string, portText: string): TargetResult {
  const sandboxId = parseSandboxId(id);
  if (!sandboxId) return { kind: "invalid", message: "Invalid sandbox ID" };
  const port = parsePort(portText);
  if (port === undefined) return { kind: "invalid", message: "Invalid sandbox port" };
  return { kind: "target", target: { sandboxId, port } };
}
