import type { Duplex } from "node:stream";
import { AGENT_PORT, type Target } from "@skerry/wire";
import type { Refusal } from "../answers/refusal.ts";
import { type Framing, valuesOf } from "../forwarding/headers.ts";
import { openUpstream, type UpstreamDeps } from "./open-upstream.ts";
import { type RequestHead, routeRequest } from "./route-request.ts";

export type Admission =
  | {
      readonly kind: "admitted";
      readonly target: Target;
      readonly path: string;
      readonly framing: Framing;
      /** Open, and the caller's from now on. */
      readonly upstream: Duplex;
    }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/**
 * Every check that a request passes before its first byte goes to a sandbox, in the order in which clients see them fail:
 * 1. the target (400), 2. paths reserved for the platform (404), 3. is the sandbox running (502), or can this request wake it
 * (403, 409, 429, 503), 4. traffic token (403) and 5. connection limit (429), which are not built yet and belong between the lookup and the dial,
 * 6. does the port answer (502).
 */
export async function admit(deps: UpstreamDeps, head: RequestHead, signal: AbortSignal): Promise<Admission> {
  const routing = routeRequest(head);
  if (routing.kind === "refused") return routing;
  const { target, path, framing } = routing;
  const accessToken = valuesOf(head.rawHeaders, "x-access-token").join(", ");
  const visitor = { port: target.port, accessToken, isProbe: isProbe(head.method, target, path) };
  const upstream = await openUpstream(deps, { target, visitor, signal });
  if (upstream.kind === "refused") return upstream;
  return { kind: "admitted", target, path, framing, upstream: upstream.stream };
}

function isProbe(method: string, target: Target, path: string): boolean {
  return target.port === AGENT_PORT && (method === "GET" || method === "HEAD") && path.split("?", 1)[0] === "/health";
}
