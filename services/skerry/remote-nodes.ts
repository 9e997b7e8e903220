// The nodes of split roles: a list of addresses from the configuration, each asked for its name until it answers.

import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { NodeDirectory, NodeHandle } from "@skerry/api";
import { asError, type Logger, type Secret } from "@skerry/base";
import { NodeService } from "@skerry/wire/node";

const RETRY_MS = 1_000;
const INFO_TIMEOUT_MS = 5_000;

export interface RemoteNodes extends NodeDirectory {
  /** Answers when every node has answered once. */
  ready(): Promise<void>;
  close(): void;
}

export function remoteNodes(options: { urls: readonly string[]; secret: Secret; logger: Logger }): RemoteNodes {
  const known = new Map<string, NodeHandle>();
  const stop = new AbortController();
  const all = Promise.all(
    options.urls.map(async (url) => {
      const client = createClient(NodeService, rpcTransport(url, options.secret));
      const nodeId = await askName(client, { url, logger: options.logger, signal: stop.signal });
      if (nodeId !== undefined) known.set(nodeId, { nodeId, url, client });
    }),
  );
  return {
    list: () => [...known.values()],
    ready: async () => {
      await all;
    },
    close: () => stop.abort(),
  };
}

/** Connect over HTTP/1.1 with the cluster secret on every call. */
export function rpcTransport(baseUrl: string, secret: Secret) {
  const authorise: Interceptor = (next) => (request) => {
    request.header.set("Authorization", `Bearer ${secret.reveal()}`);
    return next(request);
  };
  return createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [authorise] });
}

async function askName(
  client: Client<typeof NodeService>,
  options: { url: string; logger: Logger; signal: AbortSignal },
): Promise<string | undefined> {
  const { url, logger, signal } = options;
  while (!signal.aborted) {
    try {
      return (await client.getInfo({}, { timeoutMs: INFO_TIMEOUT_MS, signal })).nodeId;
    } catch (error) {
      logger.warn({ node_url: url, err: asError(error) }, "node does not answer yet");
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
  return undefined;
}
