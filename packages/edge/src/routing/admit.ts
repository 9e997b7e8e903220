import type { Duplex } from "node:stream";
import { untilAborted } from "@skerry/base";
import { AGENT_PORT, type Target } from "@skerry/wire";
import { invalidSignature, type Refusal, tooManySignatures, unroutable } from "../answers/refusal.ts";
import { type Framing, valuesOf } from "../forwarding/headers.ts";
import type { KeptUpstream } from "../forwarding/kept-upstream.ts";
import { trafficTokenIn } from "../ingress/traffic-token.ts";
import { enterByLink } from "../links/enter.ts";
import type { LinkLookup } from "../links/link-lookup.ts";
import { admissionDuration, admissions } from "../metrics.ts";
import type { SignedFile } from "../signatures/signed-request.ts";
import type { SignerLookup } from "../signatures/signer-lookup.ts";
import { type Call, explainFailure, type OpenDeps, type Opened, openUpstream } from "./open-upstream.ts";
import { type RequestHead, type Routing, routeRequest } from "./route-request.ts";
import { ANONYMOUS_REFUSALS, refusalsNaming } from "./upstream-refusals.ts";

export type Admission =
  | {
      readonly kind: "admitted";
      readonly target: Target;
      readonly path: string;
      /** What precedes the path in the client's address. Empty except in the path form. */
      readonly prefix: string;
      readonly framing: Framing;
      /** The Host for the server in the sandbox. Undefined: that of the request. */
      readonly maskedHost: string | undefined;
      /** An open connection, which the caller owns. */
      readonly upstream: Duplex;
      readonly keep: Opened["keep"];
      readonly reopen: Opened["reopen"];
      /** Returns the response for the client if the connection breaks before the sandbox responds. */
      readonly explainBreak: () => Promise<Refusal>;
    }
  | { readonly kind: "refused"; readonly refusal: Refusal };

export interface AdmitDeps extends OpenDeps {
  readonly signers: SignerLookup;
  readonly links: LinkLookup;
  /** The host name of the path form, as of `hostNameOf`. */
  readonly pathHost: string | undefined;
}

/**
 * Runs every check before the first byte of a request goes to a sandbox, in the order in which clients see them fail:
 * 1. the target (400), or the signature that leads to one (401, 429)
 * 2. paths that are reserved for the platform (404)
 * 3. a link in the query or the header (302, 403, 429)
 * 4. whether the sandbox is running (502), or can be woken by this request (403, 409, 429, 503)
 * 5. the traffic token of a private sandbox, or a link in a cookie (403, 429)
 * 6. the rate of the sandbox's requests, and the number of its open ones (429)
 * 7. whether its port answers (502)
 */
export async function admit(deps: AdmitDeps, head: RequestHead, signal: AbortSignal, kept?: KeptUpstream): Promise<Admission> {
  const startedAt = performance.now();
  let outcome = "failed";
  try {
    const admission = await decide(deps, head, signal, kept);
    outcome = signal.aborted ? "gone" : admission.kind === "admitted" ? "admitted" : String(admission.refusal.status);
    return admission;
  } finally {
    admissions.inc({ outcome });
    admissionDuration.observe((performance.now() - startedAt) / 1000);
  }
}

async function decide(deps: AdmitDeps, head: RequestHead, signal: AbortSignal, kept?: KeptUpstream): Promise<Admission> {
  const routing = routeRequest(head, deps.pathHost);
  if (routing.kind === "refused") {
    if (routing.trace) deps.refusalLog.note(routing.named ?? {}, routing.trace, head.clientAddress());
    return { kind: "refused", refusal: routing.refusal };
  }
  const { path, framing } = routing;
  const found =
    routing.kind === "signed" ? await findSigned(deps, routing.file, { head, signal }) : await callOf(deps, routing, { head, signal });
  if ("kind" in found) return found;
  const mayKeep = framing === "none" && found.target.port !== AGENT_PORT;
  const upstream = await openUpstream(deps, mayKeep ? { ...found, kept } : found);
  if (upstream.kind === "refused") return upstream;
  const explainBreak = () => explainFailure(deps, found);
  return {
    kind: "admitted",
    target: found.target,
    path,
    prefix: routing.kind === "routed" ? routing.prefix : "",
    framing,
    maskedHost: upstream.maskedHost,
    upstream: upstream.stream,
    keep: upstream.keep,
    reopen: upstream.reopen,
    explainBreak,
  };
}

async function callOf(
  deps: AdmitDeps,
  { target, path, prefix, link }: Extract<Routing, { kind: "routed" }>,
  { head, signal }: { head: RequestHead; signal: AbortSignal },
): Promise<Call | { readonly kind: "refused"; readonly refusal: Refusal }> {
  const entry = link && (await enterByLink(deps, { target, link, path, prefix, head, signal }));
  if (entry?.kind === "refused") return entry;
  const accessToken = valuesOf(head.rawHeaders, "x-access-token").join(", ");
  const { trafficToken, ...common } = commonOf(head, signal);
  const proof = entry?.kind === "open" ? entry.proof : undefined;
  const visitor = { port: target.port, accessToken, trafficToken, link: proof, isProbe: isProbe(head.method, target, path) };
  return { ...common, trafficToken, target, link: entry, visitor, refusals: refusalsNaming(target) };
}

function commonOf({ rawHeaders, clientAddress }: RequestHead, signal: AbortSignal) {
  const [host] = valuesOf(rawHeaders, "host");
  return { host, trafficToken: trafficTokenIn(rawHeaders), clientAddress, signal };
}

/** A signature wakes no sandbox, and no response contains the id of the sandbox that it leads to. */
async function findSigned(
  deps: AdmitDeps,
  file: SignedFile,
  { head, signal }: { head: RequestHead; signal: AbortSignal },
): Promise<Call | { readonly kind: "refused"; readonly refusal: Refusal }> {
  try {
    const answer = await untilAborted(deps.signers.find(file, head.clientAddress()), signal);
    if (answer.kind !== "found") {
      const isLimited = answer.kind === "limited";
      deps.refusalLog.note({}, isLimited ? "signature limited" : "signature invalid", head.clientAddress());
      return { kind: "refused", refusal: isLimited ? tooManySignatures() : invalidSignature() };
    }
    return { ...commonOf(head, signal), target: { sandboxId: answer.sandboxId, port: AGENT_PORT }, refusals: ANONYMOUS_REFUSALS };
  } catch (err) {
    if (!signal.aborted) deps.logger.warn({ err }, "finding the sandbox of a signature failed");
    return { kind: "refused", refusal: unroutable() };
  }
}

function isProbe(method: string, target: Target, path: string): boolean {
  return target.port === AGENT_PORT && (method === "GET" || method === "HEAD") && path.split("?", 1)[0] === "/health";
}
