// The only parser for the target of a request: a port of a sandbox. The edge uses it for every request and upgrade.
// A second, more lenient parser would be a way around its checks, for example of a port that is written `02280`.

import { parseSandboxId, type SandboxId } from "./ids.ts";

export interface Target {
  readonly sandboxId: SandboxId;
  readonly port: number;
}

/** The values of the two routing headers, as received; undefined when absent. */
export interface TargetHeaders {
  readonly sandboxId: string | undefined;
  readonly port: string | undefined;
}

/**
 * - `unnamed`: neither the host nor a header names a sandbox. A signed file URL may still lead to one.
 * - `invalid`: the host or a header names a sandbox in a wrong form.
 *
 * The client gets the message if there is no other way to find the sandbox.
 */
export type TargetResult =
  | { readonly kind: "target"; readonly target: Target }
  | { readonly kind: "unnamed" | "invalid"; readonly message: string };

/** `{port}-{sandboxID}`, and a suffix that older clients append. */
const HOST_LABEL = /^\d+-[a-z0-9]+(?:-.*)?$/i;

/** Parses a decimal port from 1 to 65535, without a sign and leading zeros. Returns undefined for other texts. */
export function parsePort(text: string): number | undefined {
  if (!/^[1-9]\d{0,4}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= 65535 ? port : undefined;
}

/**
 * Finds the target of a request. A host whose first label is `{port}-{sandboxID}` takes precedence. Any other host needs both
 * `E2b-Sandbox-Id` and `E2b-Sandbox-Port`. See "Edge routing" in `docs/compatibility.md`.
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

/** Returns the text before the first dot, or undefined if there is no dot, as in `localhost` and `[::1]`. */
function firstLabel(host: string): string | undefined {
  const [name = ""] = host.split(":", 1);
  const dot = name.indexOf(".");
  return dot < 0 ? undefined : name.slice(0, dot);
}

/** Host names are case-insensitive and ids are not, so the label is converted to lower case. */
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

/**
 * - `target`: `path` is what the server in the sandbox sees, and `prefix` what precedes it.
 * - `unslashed`: the slash after the port is missing, without which relative URLs of a page would lead elsewhere.
 */
export type PathResult =
  | { readonly kind: "target"; readonly target: Target; readonly prefix: string; readonly path: string }
  | { readonly kind: "unslashed"; readonly slashed: string }
  | { readonly kind: "invalid"; readonly message: string };

const PATH_FORM = /^\/s\/([^/?#\\]*)\/([^/?#\\]*)(.*)$/s;

/**
 * Finds the target of a request on the host name of the path form, whose path is `/s/{sandboxID}/{port}/…`. Refuses paths with dot segments,
 * also encoded ones: what is in between the client and the edge may resolve them, and so mean another sandbox than the edge.
 */
export function parsePathTarget(url: string): PathResult {
  const match = PATH_FORM.exec(url);
  if (!match) return { kind: "invalid", message: "Sandboxes are at /s/{sandboxID}/{port}/ of this host" };
  const [, id = "", port = "", rest = ""] = match;
  const parsed = fromParts(id, port);
  if (parsed.kind !== "target") return { kind: "invalid", message: parsed.message };
  // The legacy form of an id would be a second name for the same path.
  if (parsed.target.sandboxId !== id) return { kind: "invalid", message: "Invalid sandbox ID" };
  const prefix = `/s/${id}/${port}`;
  if (rest === "" || rest.startsWith("?")) return { kind: "unslashed", slashed: `${prefix}/${rest}` };
  if (!rest.startsWith("/") || hasDotSegment(rest)) return { kind: "invalid", message: "Invalid path" };
  return { kind: "target", target: parsed.target, prefix, path: rest };
}

function hasDotSegment(rest: string): boolean {
  const [path = ""] = rest.split("?", 1);
  const decoded = path.replace(/%(2e|2f|5c)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return decoded.split(/[/\\#]/).some((segment) => /^\.\.?(?:;|$)/.test(segment));
}

/** Returns the name in a Host, in lower case and without a port and a final dot. IPv6 addresses keep their brackets. */
export function hostNameOf(host: string): string {
  const [name = ""] = /^(?:\[[^\]]*\]|[^:]*)/.exec(host) ?? [];
  return name.toLowerCase().replace(/\.$/, "");
}

/** Returns whether a host name could name a sandbox in the host form. */
export function isSandboxHost(host: string): boolean {
  return HOST_LABEL.test(firstLabel(host) ?? "");
}
