// The nodes of split roles. The configuration lists their addresses; each node is asked for its id until it answers.

import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { asError, type Logger, type Secret } from "@skerry/base";
import { NodeService } from "@skerry/wire/node";
import { clusterInterceptor } from "./cluster-interceptor.ts";
import type { NodeDirectory, NodeHandle } from "./directory.ts";
import { traceInterceptor } from "./trace-interceptor.ts";

/** Pause between two attempts to reach a node that has not answered yet. */
const RETRY_MS = 1_000;
/** Longest wait for all nodes at startup. A host that is down must not keep clients from using the others. */
const NODES_WAIT_MS = 5_000;
const INFO_TIMEOUT_MS = 5_000;

export interface RemoteNodes extends NodeDirectory {
  /** Resolves when every node has answered once, and after `NODES_WAIT_MS` at the latest. */
  settled(): Promise<void>;
  close(): void;
}

export interface RemoteNodesOptions {
  readonly urls: readonly string[];
  readonly secret: Secret;
  /** A node that holds sandboxes of another cluster is not listed. */
  readonly clusterId: string;
  readonly logger: Logger;
}

export function remoteNodes(options: RemoteNodesOptions): RemoteNodes {
  const known = new Map<string, NodeHandle>();
  const interceptors = [traceInterceptor, clusterInterceptor(options.clusterId, options.logger)];
  const stop = new AbortController();
  const all = Promise.all(
    options.urls.map(async (url) => {
      const client = createClient(NodeService, rpcTransport(url, options.secret, interceptors));
      const nodeId = await askName(client, { ...options, url, signal: stop.signal });
      if (nodeId !== undefined) known.set(nodeId, { nodeId, url, client });
    }),
  );
  return {
    list: () => [...known.values()],
    settled: async () => {
      if ((await Promise.race([all, sleep(NODES_WAIT_MS, "late" as const, { ref: false })])) !== "late") return;
      const answered = [...known.values()].map(({ url }) => url);
      const missing = options.urls.filter((url) => !answered.includes(url));
      options.logger.warn({ node_urls: missing }, "starting without the nodes that do not answer yet: they are added when they answer");
    },
    close: () => stop.abort(),
  };
}

/** Connect over HTTP/1.1, with the cluster secret on every call. */
export function rpcTransport(baseUrl: string, secret: Secret, interceptors: readonly Interceptor[] = []) {
  const authorise: Interceptor = (next) => (request) => {
    request.header.set("Authorization", `Bearer ${secret.reveal()}`);
    return next(request);
  };
  return createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [authorise, ...interceptors] });
}

/** The node's id; undefined when the signal is aborted first. */
async function askName(
  client: Client<typeof NodeService>,
  options: { url: string; clusterId: string; logger: Logger; signal: AbortSignal },
): Promise<string | undefined> {
  const { url, clusterId, logger, signal } = options;
  while (!signal.aborted) {
    try {
      const info = await client.getInfo({}, { timeoutMs: INFO_TIMEOUT_MS, signal });
      if (info.clusterId === "" || info.clusterId === clusterId) return info.nodeId;
      const facts = { node_url: url, node_id: info.nodeId, cluster_id: clusterId, node_cluster_id: info.clusterId };
      logger.error(facts, "a node holds sandboxes of another cluster, and is not taken in: is this the right database?");
    } catch (error) {
      logger.warn({ node_url: url, err: asError(error) }, "node does not answer yet");
    }
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
  }
  return undefined;
}
