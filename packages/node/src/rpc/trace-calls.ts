import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { TRACE_HEADER, tracedWithin } from "@skerry/telemetry";
import { NodeService } from "@skerry/wire/node";

/**
 * Makes calls parts of their callers' traces. The callers are trusted: without the cluster secret nobody calls a node. Streams, which last,
 * are left out.
 */
export function traceCalls(service: ServiceImpl<typeof NodeService>): ServiceImpl<typeof NodeService> {
  const unary = new Set(NodeService.methods.filter(({ methodKind }) => methodKind === "unary").map(({ localName }) => localName));
  const calls: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(service) as [string, Method][]) {
    calls[name] = (request: unknown, context: HandlerContext) => {
      const call = () => method.call(service, request, context);
      if (!unary.has(name)) return call();
      return tracedWithin({ name, kind: "server", parent: context.requestHeader.get(TRACE_HEADER) ?? undefined }, call);
    };
  }
  return calls as unknown as ServiceImpl<typeof NodeService>;
}

type Method = (request: unknown, context: HandlerContext) => Promise<unknown>;
