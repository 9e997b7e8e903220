import { AGENT_PORT, AGENT_RESERVED_PATHS, type Target } from "@skerry/wire";

/** More rounds of percent-decoding than any chain of parsers behind us does. */
const MAX_DECODINGS = 4;

/**
 * True when a request could reach an agent path that only the platform may call, under any reading of its path:
 * percent-decoded once or several times, `//`, `/./`, `/../`, a trailing slash, backslashes, another case.
 * Stricter than the agent's own router on purpose: a spelling that only one of the two understands must not get through.
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
  // Still changing after that many rounds: nobody writes such a path in good faith.
  return true;
}

/** The path without query and fragment, lower case, with `.`, `..` and empty segments resolved. */
function cleanPath(text: string): string {
  const [path = ""] = text.split(/[?#]/, 1);
  const segments: string[] = [];
  for (const segment of path.toLowerCase().split(/[/\\]/)) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment.split(";", 1)[0]?.trim() ?? "");
  }
  return `/${segments.join("/")}`;
}

/** Decodes each `%xx` by itself, so that one malformed escape cannot stop the decoding of the others. */
function decodeOnce(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
