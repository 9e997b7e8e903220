import { createClient, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { type Logger, PlatformError } from "@skerry/base";
import { NodeService } from "@skerry/wire/node";
import { clusterInterceptor } from "./cluster-interceptor.ts";
import type { NodeDirectory } from "./directory.ts";
import { traceInterceptor } from "./trace-interceptor.ts";

export interface LocalNodeOptions {
  readonly service: ServiceImpl<typeof NodeService>;
  /** Where edges in other processes reach the node. */
  readonly url: string;
  readonly clusterId: string;
  readonly logger: Logger;
}

/** The node of this process. Throws PlatformError("config_invalid") when it holds sandboxes of another cluster. */
export async function localNode({ service, url, clusterId, logger }: LocalNodeOptions): Promise<NodeDirectory> {
  const interceptors = [traceInterceptor, clusterInterceptor(clusterId, logger)];
  const transport = createRouterTransport((router) => router.service(NodeService, service), { transport: { interceptors } });
  const client = createClient(NodeService, transport);
  const info = await client.getInfo({});
  if (info.clusterId !== "" && info.clusterId !== clusterId) {
    throw new PlatformError(
      "config_invalid",
      "this machine holds sandboxes that this database (SKERRY_DATABASE_URL, or skerry.db) does not know, because they belong to another one. " +
        "Use the former database. To lose those sandboxes instead, delete node/cluster.json in the data folder and start again",
    );
  }
  const handle = { nodeId: info.nodeId, url, client };
  return { list: () => [handle] };
}
