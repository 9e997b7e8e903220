// Who may call what, once /init has set an access token.

import type { IncomingMessage } from "node:http";
import type { AgentState } from "../state.ts";
import { HttpError } from "./exchange.ts";

/** These check for themselves: file routes also take signatures, /init has its own rule, /health has none. */
const SELF_CHECKING = new Set(["GET /health", "GET /files", "POST /files", "POST /init"]);

// An integer code in the body also on RPC paths: clients then map the HTTP status.
const MESSAGE = "unauthorized access, please provide a valid access token or method signing if supported";

export function assertAccess(state: AgentState, req: IncomingMessage, path: string): void {
  if (state.accessToken === undefined || SELF_CHECKING.has(`${req.method} ${path}`)) return;
  if (!equalSecrets(headerToken(req) ?? "", state.accessToken)) throw new HttpError(401, MESSAGE);
}

export function headerToken(req: IncomingMessage): string | undefined {
  const value = req.headers["x-access-token"];
  return Array.isArray(value) ? value[0] : value;
}

/** Takes as long for a near miss as for a far one. Every request comes here, and Node's own comparison would load all its cryptography. */
export function equalSecrets(a: string, b: string): boolean {
  const left = Buffer.from(a, "utf8");
  const right = Buffer.from(b, "utf8");
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let index = 0; index < left.length; index++) difference |= (left[index] ?? 0) ^ (right[index] ?? 0);
  return difference === 0;
}
