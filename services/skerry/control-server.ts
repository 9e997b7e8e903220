// Serves the route RPC of the api role to edges in other processes.

import { createServer } from "node:http";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { endingConnections, isBearer, type Secret } from "@skerry/base";
import { RouteService } from "@skerry/wire/control";

export async function listenControlServer(options: {
  host: string;
  port: number;
  secret: Secret;
  service: ServiceImpl<typeof RouteService>;
}): Promise<{ close(): Promise<void> }> {
  const handle = connectNodeAdapter({ routes: (router) => router.service(RouteService, options.service), grpc: false, grpcWeb: false });
  const server = createServer((request, response) => {
    if (!isBearer(request.headers.authorization, options.secret)) {
      response.writeHead(401, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ code: "unauthenticated", message: "the cluster secret is missing or wrong" }));
      return;
    }
    handle(request, response);
  });
  const close = endingConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  return { close };
}
