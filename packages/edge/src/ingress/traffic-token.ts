import { hash, timingSafeEqual } from "node:crypto";
import { AGENT_PORT, type Target } from "@skerry/wire";
import { type RawHeaders, TRAFFIC_TOKEN_FIELD, valuesOf } from "../forwarding/headers.ts";
import type { Ingress } from "../ports.ts";

/** Returns the traffic token of a request as received, or "". With two fields there are two values, which match no token. */
export function trafficTokenIn(rawHeaders: RawHeaders): string {
  return valuesOf(rawHeaders, TRAFFIC_TOKEN_FIELD).join(", ");
}

export type TokenFault = "missing" | "invalid";

/**
 * Returns what is wrong with the traffic token of a request, or undefined if the request may enter. The agent checks its own token, so
 * its port needs no other. The comparison takes the same time for every token of the same length.
 */
export function tokenFault(ingress: Ingress | undefined, target: Target, token: string): TokenFault | undefined {
  if (ingress?.tokenDigest === undefined || target.port === AGENT_PORT) return undefined;
  if (token === "") return "missing";
  const digest = hash("sha256", token, "buffer");
  const wanted = ingress.tokenDigest;
  return digest.length === wanted.length && timingSafeEqual(digest, wanted) ? undefined : "invalid";
}
