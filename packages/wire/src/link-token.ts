// The credential of a link to a port of a sandbox: the link's id, a dot, and 256 random bits.

/** The query parameter with which a link is opened. */
export const LINK_PARAMETER = "skerry-link";

/** The header in which programs send the token of a link. */
export const LINK_TOKEN_FIELD = "skerry-link-token";

/** The cookie in which browsers send the token of a link that was opened. */
export const LINK_COOKIE = "skerry-link";

const TOKEN = /^(lnk_[a-z0-9]{20})\.[A-Za-z0-9_-]{43}$/;

/** What proves a link. The token itself goes no further than to the edge. */
export interface LinkProof {
  readonly linkId: string;
  /** The SHA-256 of the whole token. */
  readonly digest: Uint8Array;
}

/** Returns the id of the link in a token, or undefined for a text that cannot be a token. */
export function linkIdIn(token: string): string | undefined {
  return TOKEN.exec(token)?.[1];
}
