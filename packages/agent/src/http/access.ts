// Who may call which route once /init has set an access token.

import type { IncomingMessage } from "node:http";
import type { AgentState } from "../state.ts";
import { HttpError } from "./exchange.ts";

/** Routes that check access themselves: file routes also accept signatures, /init has its own rule, and /health is public. */
const SELF_CHECKING = new Set(["GET /health", "GET /files", "POST /files", "POST /init"]);

// The body has an integer code on RPC paths too: clients then map the HTTP status.
const MESSAGE = "unauthorized access, please provide a valid access token or method signing if supported";

export function assertAccess(state: AgentState, req: IncomingMessage, path: string): void {
  if (state.accessToken === undefined || SELF_CHECKING.has(`${req.method} ${path}`)) return;
  if (!equalSecrets(headerToken(req) ?? "", state.accessToken)) throw new HttpError(401, MESSAGE);
}

export function headerToken(req: IncomingMessage): string | undefined {
  const value = req.headers["x-access-token"];
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Takes the same time for all strings of one length. Every request needs it, and Node's own comparison would load its whole crypto
 * module.
 */
export function equalSecrets(a: string, b: string): boolean {
  const left = Buffer.from(a, "utf8");
  const right = Buffer.from(b, "utf8");
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let index = 0; index < left.length; index++) difference |= (left[index] ?? 0) ^ (right[index] ?? 0);
  return difference === 0;
}
