import type { Duplex } from "node:stream";
import type { SandboxId, SignedFileRequest, Target } from "@skerry/wire";

/** Where a sandbox's traffic goes. */
export interface Route {
  readonly nodeId: string;
  /** Base URL of the node's RPC listener; meaningless when the node is in this process. */
  readonly nodeUrl: string;
  /** Another one after each resume of the sandbox. */
  readonly run: string;
}

/** What a request shows for itself when its sandbox sleeps. Whether that is enough is the control plane's to say. */
export interface Visitor {
  readonly port: number;
  /** As it was sent; "" when it was not. */
  readonly accessToken: string;
  /** It only asks the agent whether it is there. */
  readonly isProbe: boolean;
}

/** Why a sandbox has no route, as far as clients are told. */
export interface Absence {
  readonly state: "unknown" | "paused" | "ended";
  /** For `ended`: "request", "timeout", "memory", … */
  readonly endReason?: string;
  /** For `ended`: RFC 3339, in UTC. */
  readonly endedAt?: string;
}

export type RouteAnswer =
  | { readonly kind: "running"; readonly route: Route }
  | { readonly kind: "absent"; readonly absence: Absence }
  /** It sleeps, and this visitor may not wake it. */
  | { readonly kind: "denied" }
  /** It is still on its way from one state to another. */
  | { readonly kind: "transitioning" }
  /** Its team runs as many sandboxes as it may. */
  | { readonly kind: "limited"; readonly message: string }
  /** It can't be woken for now. */
  | { readonly kind: "busy" };

/**
 * Which node has a sandbox.
 *
 * Failure policy: an answer may be old, because the node is asked for the sandbox by id in every dial and refuses one it
 * does not have. After such a refusal the edge calls `forget` and asks once more. An unreadable route is an error,
 * never the last known node.
 */
export interface RouteTable {
  /**
   * With a visitor, a sandbox that traffic may wake is woken, and the answer comes when it runs: within about a minute.
   * A caller that no longer wants the answer just stops waiting; the others, and the sandbox, go on.
   */
  find(sandboxId: SandboxId, visitor?: Visitor): Promise<RouteAnswer>;
  /** The last answer for this sandbox turned out wrong. */
  forget(sandboxId: SandboxId): void;
}

/**
 * Finds the running sandbox whose access token made a signature; undefined when there is none.
 *
 * Failure policy: throws when the control plane does not answer.
 */
export type FindSigner = (file: SignedFileRequest & { readonly signature: string }) => Promise<SandboxId | undefined>;

/**
 * Opens a byte stream to a port of a sandbox, or throws a PlatformError with a DialErrorCode. The stream is the caller's from then on.
 * It should be opened with `allowHalfOpen`, and must end with an error (a reset), not with a clean end, when the sandbox dies.
 */
export type Dial = (route: Route, target: Target, signal: AbortSignal) => Promise<Duplex>;
