import type { IncomingMessage, ServerResponse } from "node:http";

const METHODS = new Set(["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"]);
const EXPOSED = "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, Cache-Control, X-Content-Type-Options";

/** Sets the CORS headers. Returns true for a preflight, which it has answered itself, before any check of a token. */
export function applyCors(req: IncomingMessage, res: ServerResponse): boolean {
  const requestedMethod = req.headers["access-control-request-method"];
  if (req.method === "OPTIONS" && req.headers.origin !== undefined && requestedMethod !== undefined) {
    preflight(req, res, requestedMethod);
    return true;
  }
  res.setHeader("Vary", "Origin");
  if (req.headers.origin !== undefined) {
    res.setHeader("Access-Control-Allow-Origin", "*");
    res.setHeader("Access-Control-Expose-Headers", EXPOSED);
  }
  return false;
}

function preflight(req: IncomingMessage, res: ServerResponse, requestedMethod: string): void {
  res.setHeader("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
  if (METHODS.has(requestedMethod.toUpperCase())) {
    res.setHeader("Access-Control-Allow-Origin", "*");
    res.setHeader("Access-Control-Allow-Methods", requestedMethod.toUpperCase());
    const headers = req.headers["access-control-request-headers"];
    if (headers !== undefined) res.setHeader("Access-Control-Allow-Headers", headers);
    res.setHeader("Access-Control-Max-Age", "7200");
  }
  res.writeHead(204).end();
}
