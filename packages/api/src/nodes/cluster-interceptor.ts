import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Logger } from "@skerry/base";
import { CLUSTER_ID_HEADER } from "@skerry/wire";

/** A node of another cluster is asked every few seconds. */
const LOG_EVERY_MS = 60_000;

/**
 * Says on every call to a node which cluster we are of. A node that belongs to another one is, for us, one that cannot be
 * reached: nothing on it is ours, and nothing is proved by what it does not say.
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
