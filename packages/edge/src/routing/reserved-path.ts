import { AGENT_PORT, AGENT_RESERVED_PATHS, type Target } from "@skerry/wire";

/** Maximum number of rounds of percent-decoding, more than any chain of parsers behind the edge performs. */
const MAX_DECODINGS = 4;

/**
 * Returns whether a request could reach an agent path that is reserved for the platform, under any interpretation of its path:
 * percent-decoded once or several times, with `//`, `/./`, `/../`, a trailing slash, backslashes, or other letter case.
 * This is stricter than the agent's router, so that no spelling is accepted that only the agent understands.
 */
export function isReservedPath(target: Target, path: string): boolean {
  if (target.port !== AGENT_PORT) return false;
  let text = path;
  for (let round = 0; round <= MAX_DECODINGS; round++) {
    if (AGENT_RESERVED_PATHS.has(cleanPath(text))) return true;
    const decoded = decodeOnce(text);
    if (decoded === text) return false;
    text = decoded;
  }
  // No legitimate client encodes a path more often than that.
  return true;
}

/** Returns the path in lower case, without query and fragment, and with `.`, `..` and empty segments resolved. */
function cleanPath(text: string): string {
  const [path = ""] = text.split(/[?#]/, 1);
  const segments: string[] = [];
  for (const segment of path.toLowerCase().split(/[/\\]/)) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment.split(";", 1)[0]?.trim() ?? "");
  }
  return `/${segments.join("/")}`;
}

/** Decodes each `%xx` separately, so that a malformed escape does not prevent the decoding of the others. */
function decodeOnce(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
