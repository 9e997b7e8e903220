import type { ServerResponse } from "node:http";
import type { Exchange, Route } from "./exchange.ts";

/** Routes by exact path: a trailing or doubled slash makes a different path. */
export type RouteTable = ReadonlyMap<string, Readonly<Partial<Record<"GET" | "POST", Route>>>>;

export async function route(table: RouteTable, exchange: Exchange): Promise<void> {
  const methods = table.get(exchange.path);
  if (!methods) return notFound(exchange.res);
  const handler = exchange.req.method === "GET" ? methods.GET : exchange.req.method === "POST" ? methods.POST : undefined;
  if (!handler) {
    exchange.res.writeHead(405, { Allow: Object.keys(methods), "Content-Length": "0" }).end();
    return;
  }
  await handler(exchange);
}

function notFound(res: ServerResponse): void {
  const text = "404 page not found\n";
  res.writeHead(404, {
    "Content-Type": "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Content-Length": text.length,
  });
  res.end(text);
}
