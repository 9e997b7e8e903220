import type { Interceptor } from "@connectrpc/connect";
import { TRACE_HEADER, tracedWithin, traceHeader } from "@skerry/telemetry";

/** Makes each call to a node a part of the trace of the request that causes it. */
export const traceInterceptor: Interceptor = (next) => (request) => {
  const facts = { "rpc.system": "connect_rpc", "rpc.method": `${request.service.typeName}/${request.method.name}` };
  return tracedWithin({ name: `node ${request.method.name}`, kind: "client", facts }, () => {
    const header = traceHeader();
    if (header !== undefined) request.header.set(TRACE_HEADER, header);
    return next(request);
  });
};
