import type { Duplex } from "node:stream";
import type { LinkProof, SandboxId, SignedFileRequest, Target } from "@skerry/wire";

/** The node that sandbox traffic goes to. */
export interface Route {
  readonly nodeId: string;
  /** Base URL of the node's RPC listener. Not used when the node runs in this process. */
  readonly nodeUrl: string;
  /** Changes with each resume of the sandbox. */
  readonly run: string;
  /** Sandboxes with the same group share limits. Absent: none. */
  readonly group?: string;
  /** Absent when requests go to the sandbox as they are. */
  readonly ingress?: Ingress;
}

/** How requests reach the ports of a sandbox other than the agent's. Never changes for a sandbox. */
export interface Ingress {
  /** The SHA-256 of the traffic token that requests must carry. Absent: they need none. */
  readonly tokenDigest?: Uint8Array;
  /** The Host that servers see, with `${PORT}` for the port. Absent: that of the request. */
  readonly hostTemplate?: string;
  /** The ports on which servers speak TLS. */
  readonly tlsPorts: ReadonlySet<number>;
}

/** What the control plane needs to know about a request in order to decide whether the request may wake a paused sandbox. */
export interface Visitor {
  readonly port: number;
  /** As received; "" when absent. */
  readonly accessToken: string;
  /** As received; "" when absent. */
  readonly trafficToken: string;
  /** The link that opens the port, if the request shows one. */
  readonly link?: LinkProof | undefined;
  /** The request is a health check of the agent. */
  readonly isProbe: boolean;
}

/** Why a sandbox has no route. Clients are told this much. */
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
  /** The sandbox is paused, and this visitor may not wake it. */
  | { readonly kind: "denied" }
  /** The sandbox is still changing its state. */
  | { readonly kind: "transitioning" }
  /** The team has reached its limit of running sandboxes. */
  | { readonly kind: "limited"; readonly message: string }
  /** The sandbox cannot be woken now. */
  | { readonly kind: "busy" };

/**
 * Finds the node of a sandbox.
 *
 * Failure policy: a route may be stale. Every dial names the sandbox, and a node refuses sandboxes that it does not have. After
 * such a refusal the edge calls `forget` and looks up the route once more. If the route cannot be read, `find` throws.
 */
export interface RouteTable {
  /**
   * With a visitor, the control plane wakes a paused sandbox if this is allowed, and the promise resolves when the sandbox runs,
   * within about a minute. A caller may stop waiting at any time. This affects neither other callers nor the resume.
   *
   * `isFresh`: the known route is used only if the control plane does not respond.
   */
  find(sandboxId: SandboxId, visitor?: Visitor, options?: { readonly isFresh?: boolean }): Promise<RouteAnswer>;
  /** Discards the known route of the sandbox, because it was wrong. */
  forget(sandboxId: SandboxId): void;
}

/**
 * Returns the running sandbox whose access token made a signature, or undefined.
 *
 * Failure policy: throws if the control plane does not answer.
 */
export type FindSigner = (file: SignedFileRequest & { readonly signature: string }) => Promise<SandboxId | undefined>;

/** A link that opens a port. */
export interface ValidLink {
  readonly expiresInMs: number;
  /** The methods that it permits. Empty: all. */
  readonly methods: readonly string[];
}

/**
 * Returns the link that the proof proves, if it is valid now and leads to this port.
 *
 * Failure policy: throws if the control plane does not answer.
 */
export type FindLink = (target: Target, proof: LinkProof) => Promise<ValidLink | undefined>;

/**
 * Opens a byte stream to a port of a sandbox, or throws a PlatformError with a DialErrorCode. The caller then owns the stream.
 * The stream should have `allowHalfOpen`. When the sandbox ends, the stream must fail with an error (a reset), not end cleanly.
 */
export type Dial = (route: Route, target: Target, signal: AbortSignal) => Promise<Duplex>;
