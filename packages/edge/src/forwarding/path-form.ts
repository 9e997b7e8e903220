// How the edge changes the response of a server that clients reach as `/s/{sandboxID}/{port}/…`, on a host name that all sandboxes share.
// To a browser they are one origin, so a response must have no effect beyond its own prefix.

import { fields } from "./headers.ts";

/** Where clients see the server. */
export interface PathView {
  /** Such as `/s/{sandboxID}/{port}`. Empty for the other ways in. */
  readonly prefix: string;
  /** The Host that the server sees. */
  readonly host: string | undefined;
}

/**
 * Gives each document an origin of its own: its scripts run, and cannot use cookies, storage or pages of the shared origin. It has no
 * `allow-same-origin`, and none that lets a frame navigate its top-level page without a click.
 */
const SANDBOX_POLICY = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

/** Fields that change what a browser does with the whole origin, with the reason. They are removed. */
export const FOR_THE_ORIGIN: ReadonlyMap<string, string> = new Map([
  ["accept-ch", "which hints about the client all requests have"],
  ["alt-svc", "another server for all requests"],
  ["clear-site-data", "deletes the cookies of all sandboxes"],
  ["critical-ch", "repeats requests of others with more hints"],
  ["nel", "reports requests to other sandboxes"],
  ["report-to", "where these reports go"],
  ["service-worker-allowed", "lets a script handle the requests to other sandboxes"],
  ["strict-transport-security", "forbids plain HTTP for the host name"],
]);

/**
 * Rewrites `Location` and the `Path` of cookies to what clients see, and adds a policy to those of the application. Without a prefix the
 * sandbox has an origin of its own, and the response stays as it is.
 */
export function responseForPath(raw: string[], view: PathView): string[] {
  if (view.prefix === "") return raw;
  const out: string[] = [];
  for (const [name, lower, value] of fields(raw)) {
    if (FOR_THE_ORIGIN.has(lower)) continue;
    if (lower === "location") out.push(name, locationFor(value, view));
    else if (lower === "set-cookie") out.push(name, cookieFor(value, view));
    else out.push(name, value);
  }
  out.push("Content-Security-Policy", SANDBOX_POLICY);
  return out;
}

/** Changes paths, and URLs of the host that the server sees. Relative URLs and those of other hosts stay as they are. */
function locationFor(value: string, view: PathView): string {
  if (/^\/(?![/\\])/.test(value)) return prefixed(value, view);
  const url = /^https?:\/\//i.test(value) ? URL.parse(value) : null;
  if (url === null || url.host !== view.host?.toLowerCase()) return value;
  return prefixed(url.pathname + url.search + url.hash, view);
}

/** Without a `Path`, a browser takes the folder of the request, which is below the prefix. Some browsers accept quotes. */
function cookieFor(cookie: string, view: PathView): string {
  const [pair = "", ...attributes] = cookie.split(";");
  const changed = attributes.map((attribute) => {
    const [, name = "", path = ""] = /^(\s*path\s*=\s*"?)(\/.*)$/i.exec(attribute) ?? [];
    return name === "" ? attribute : name + prefixed(path.trim(), view);
  });
  return [pair, ...changed].join(";");
}

/** Leaves the paths of applications that know their prefix. */
function prefixed(path: string, { prefix }: PathView): string {
  const knows = path === prefix || ["/", "?", "#"].some((next) => path.startsWith(prefix + next));
  return knows ? path : prefix + path;
}
