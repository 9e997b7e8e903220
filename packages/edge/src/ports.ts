import type { Duplex } from "node:stream";
import type { SandboxId, Target } from "@skerry/wire";

/** Where a sandbox's traffic goes. */
export interface Route {
  readonly nodeId: string;
  /** Base URL of the node's RPC listener; meaningless when the node is in this process. */
  readonly nodeUrl: string;
}

/**
 * Which node has a sandbox.
 *
 * Failure policy: an answer may be old, because the node is asked for the sandbox by id in every dial and refuses one it
 * does not have. After such a refusal the edge calls `forget` and asks once more. An unreadable route is an error,
 * never the last known node.
 */
export interface RouteTable {
  /** Undefined when the sandbox is not running. */
  find(sandboxId: SandboxId): Promise<Route | undefined>;
  /** The last answer for this sandbox turned out wrong. */
  forget(sandboxId: SandboxId): void;
}

/** Why a dial failed. Any other error counts as `node_unreachable`. */
export type DialErrorCode = "sandbox_gone" | "port_closed" | "node_unreachable";

/**
 * Opens a byte stream to a port of a sandbox, or throws PlatformError<DialErrorCode>. The stream is the caller's from then on.
 * It should be opened with `allowHalfOpen`, and must end with an error (a reset), not with a clean end, when the sandbox dies.
 */
export type Dial = (route: Route, target: Target, signal: AbortSignal) => Promise<Duplex>;
