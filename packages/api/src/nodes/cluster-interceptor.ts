import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Logger } from "@skerry/base";
import { CLUSTER_ID_HEADER } from "@skerry/wire";

/** Shortest interval between two log lines, because a node of another cluster refuses a call every few seconds. */
const LOG_EVERY_MS = 60_000;

/**
 * Adds the cluster's id to every call to a node. A node of another cluster refuses the call, and the caller gets `Unavailable`: such a node
 * counts as unreachable, because it says nothing about the sandboxes of this cluster.
 */
export function clusterInterceptor(clusterId: string, logger: Logger): Interceptor {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (next) => async (request) => {
    request.header.set(CLUSTER_ID_HEADER, clusterId);
    try {
      return await next(request);
    } catch (error) {
      const refusal = ConnectError.from(error);
      const theirs = refusal.metadata.get(CLUSTER_ID_HEADER);
      if (refusal.code !== Code.FailedPrecondition || theirs === null) throw error;
      if (performance.now() - loggedAt >= LOG_EVERY_MS) {
        loggedAt = performance.now();
        logger.error(
          { node_url: request.url, cluster_id: clusterId, node_cluster_id: theirs, reason: refusal.rawMessage },
          "a node belongs to another cluster: is this the right database?",
        );
      }
      throw new ConnectError("the node belongs to another cluster", Code.Unavailable, undefined, undefined, error);
    }
  };
}
