import { AGENT_PORT, type Target } from "@skerry/wire";
import type { Ingress } from "../ports.ts";

/** Returns the Host that the server in the sandbox sees instead of the client's, or undefined if it sees the client's. */
export function maskedHost(ingress: Ingress | undefined, { port }: Target): string | undefined {
  if (ingress?.hostTemplate === undefined || port === AGENT_PORT) return undefined;
  return ingress.hostTemplate.replaceAll("${PORT}", String(port));
}
