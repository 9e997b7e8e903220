import type { Client } from "@connectrpc/connect";
import type { NodeService } from "@skerry/wire/node";

/** A host that runs sandboxes, and the client that calls its node. */
export interface NodeHandle {
  readonly nodeId: string;
  /** Base URL of the node's RPC listener. The edge opens its tunnels there. */
  readonly url: string;
  readonly client: Client<typeof NodeService>;
}

/** The nodes known now. Failure policy: a node that does not answer stays listed, because its sandboxes are not lost. */
export interface NodeDirectory {
  list(): readonly NodeHandle[];
}
