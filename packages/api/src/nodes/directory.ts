import type { Client } from "@connectrpc/connect";
import type { NodeService } from "@skerry/wire/node";

/** A machine that runs sandboxes, and how to ask it for something. */
export interface NodeHandle {
  readonly nodeId: string;
  /** Base URL of its RPC listener; the edge opens its tunnels there. */
  readonly url: string;
  readonly client: Client<typeof NodeService>;
}

/** The nodes known now. Failure policy: a node that cannot be reached stays listed; its sandboxes are not lost. */
export interface NodeDirectory {
  list(): readonly NodeHandle[];
}
