import { invalid } from "../../errors.ts";

/** Each pair is a condition of the query, and databases limit the number of conditions. */
const MAX_PAIRS = 64;

/**
 * Reads the `metadata` filter of a list. Clients encode it three times: each name and value, the pairs as a form, and the whole as a query
 * value. The server has already decoded the query value.
 */
export function parseMetadataFilter(text: string): Record<string, string> {
  if (text === "") return {};
  const pairs: [string, string][] = [];
  const parts = unescapeForm(text).split("&");
  if (parts.length > MAX_PAIRS) throw invalid(`Error parsing metadata: there may be at most ${MAX_PAIRS} pairs`);
  for (const pair of parts) {
    const [name, value, more] = pair.split("=");
    if (name === undefined || value === undefined || more !== undefined)
      throw invalid("Error parsing metadata: every pair must be name=value");
    pairs.push([unescapeForm(name), unescapeForm(value)]);
  }
  return Object.fromEntries(pairs);
}

function unescapeForm(text: string): string {
  let plain: string;
  try {
    plain = decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalid("Error parsing metadata: it is not percent-encoded correctly");
  }
  if (plain.includes("\0")) throw invalid("Error parsing metadata: text must not contain NUL");
  return plain;
}
