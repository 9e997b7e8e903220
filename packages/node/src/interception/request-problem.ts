import type { IncomingMessage } from "node:http";
import { fieldsOf } from "./http-fields.ts";

/**
 * Why a request must not get the headers of a host; undefined when nothing is wrong. A host that serves other names as well would otherwise
 * pass them on to whom the sandbox chooses.
 */
export function requestProblem(
  { method, url = "", rawHeaders }: Pick<IncomingMessage, "method" | "url" | "rawHeaders">,
  host: string,
): { readonly status: number; readonly why: string } | undefined {
  const hosts = fieldsOf(rawHeaders).filter(([name]) => name.toLowerCase() === "host");
  const named = hosts[0]?.[1].trim().toLowerCase().replace(/:443$/, "").replace(/\.$/, "");
  if (hosts.length !== 1 || named !== host) return { status: 421, why: "the Host of the request is not the one of the connection" };
  // An answer to TRACE has all fields of the request. CONNECT is never answered by a server of its own.
  if (method === "TRACE" || method === "CONNECT") return { status: 405, why: `requests with the method ${method} are not possible here` };
  if (!url.startsWith("/") && !(url === "*" && method === "OPTIONS")) return { status: 400, why: "the request needs a path" };
  return undefined;
}
