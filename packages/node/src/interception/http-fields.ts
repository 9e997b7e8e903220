// The header fields of a message that passes an intercepting server. Fields that concern one connection only are not passed on.

/** RFC 9110, 7.6.1; and the fields with which older proxies did the same. */
const CONNECTION_FIELDS = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** The body's end is agreed on anew for each connection. The server of the connection itself answers `Expect`. */
const REQUEST_ONLY = ["expect"];
/** It would lead the client to a protocol on which nobody adds headers. */
const RESPONSE_ONLY = ["alt-svc"];

/** Methods whose requests usually have no body. */
const WITHOUT_BODY = ["GET", "HEAD", "DELETE", "OPTIONS"];

type Fields = [name: string, value: string][];

export function fieldsOf(rawHeaders: readonly string[]): Fields {
  return Array.from({ length: rawHeaders.length / 2 }, (_, i) => [rawHeaders[2 * i] ?? "", rawHeaders[2 * i + 1] ?? ""]);
}

/** The fields of a request for the next server. `added` replace the client's fields of the same names. */
export function requestFields(
  request: { readonly method: string; readonly rawHeaders: readonly string[] },
  added: Readonly<Record<string, string>>,
): Fields {
  const fields = fieldsOf(request.rawHeaders);
  const names = new Set(Object.keys(added).map((name) => name.toLowerCase()));
  const kept = without(fields, [...CONNECTION_FIELDS, ...REQUEST_ONLY]).filter(([name]) => !names.has(name.toLowerCase()));
  return [...kept, ...Object.entries(added), ...framing(request.method, fields)];
}

export function responseFields(rawHeaders: readonly string[]): Fields {
  return without(fieldsOf(rawHeaders), [...CONNECTION_FIELDS, ...RESPONSE_ONLY]);
}

/** How the next server finds the end of the body, if the request does not say its length. */
function framing(method: string, fields: Fields): Fields {
  const has = (wanted: string) => fields.some(([name]) => name.toLowerCase() === wanted);
  if (has("transfer-encoding")) return [["Transfer-Encoding", "chunked"]];
  return has("content-length") || WITHOUT_BODY.includes(method) ? [] : [["Content-Length", "0"]];
}

/** Also without the fields that `Connection` names. */
function without(fields: Fields, names: readonly string[]): Fields {
  const named = fields.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) => value.split(","));
  const all = new Set([...names, ...named.map((name) => name.trim().toLowerCase())]);
  return fields.filter(([name]) => !all.has(name.toLowerCase()));
}
