import { hash } from "node:crypto";
import { LINK_COOKIE, LINK_PARAMETER, LINK_TOKEN_FIELD, type LinkProof, linkIdIn } from "@skerry/wire";
import { type RawHeaders, valuesOf } from "../forwarding/headers.ts";

/** How many cookies of one request are tried. Pages of other sandboxes can add some, by a cookie of the parent domain. */
const MAX_COOKIES = 4;

export interface ShownToken extends LinkProof {
  readonly token: string;
}

/** What a request shows of a link. */
export interface ShownLink {
  readonly by: "query" | "header" | "cookie";
  /** Empty when what is shown cannot be a token, or is ambiguous. */
  readonly tokens: readonly ShownToken[];
}

export interface LinkReading {
  readonly link: ShownLink | undefined;
  /** Without the parameter of the link. All other parameters are as they were. */
  readonly path: string;
}

/** The query and the header count before cookies, which browsers also send when nobody meant them. */
export function readLink(rawHeaders: RawHeaders, path: string): LinkReading {
  const query = takeParameter(path);
  const header = valuesOf(rawHeaders, LINK_TOKEN_FIELD);
  const explicit = [...query.tokens, ...header];
  if (explicit.length > 0) {
    const by = query.tokens.length > 0 ? "query" : "header";
    return { link: { by, tokens: explicit.length === 1 ? tokensFrom(explicit) : [] }, path: query.path };
  }
  const cookies = valuesOf(rawHeaders, "cookie").flatMap(linkCookiesIn);
  return { link: cookies.length === 0 ? undefined : { by: "cookie", tokens: tokensFrom(cookies.slice(0, MAX_COOKIES)) }, path };
}

function tokensFrom(texts: readonly string[]): ShownToken[] {
  return texts.flatMap((token) => {
    const linkId = linkIdIn(token);
    return linkId === undefined ? [] : [{ token, linkId, digest: hash("sha256", token, "buffer") }];
  });
}

function takeParameter(path: string): { readonly tokens: readonly string[]; readonly path: string } {
  const at = path.indexOf("?");
  if (at < 0 || !path.includes(LINK_PARAMETER, at)) return { tokens: [], path };
  const isLink = (pair: string) => pair === LINK_PARAMETER || pair.startsWith(`${LINK_PARAMETER}=`);
  const pairs = path.slice(at + 1).split("&");
  const tokens = pairs.filter(isLink).map((pair) => pair.slice(LINK_PARAMETER.length + 1));
  const rest = pairs.filter((pair) => !isLink(pair));
  return { tokens, path: path.slice(0, at) + (rest.length === 0 ? "" : `?${rest.join("&")}`) };
}

function linkCookiesIn(field: string): string[] {
  return field
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${LINK_COOKIE}=`))
    .map((pair) => pair.slice(LINK_COOKIE.length + 1));
}
