import { invalid } from "../errors.ts";

/**
 * Reads the `metadata` filter of a list. Clients encode it in three layers: each name and value by itself, the pairs as a
 * form, and the whole as a query value; the last one is undone before this.
 */
export function parseMetadataFilter(text: string): Record<string, string> {
  if (text === "") return {};
  const pairs: [string, string][] = [];
  for (const pair of unescapeForm(text).split("&")) {
    const parts = pair.split("=");
    if (parts.length !== 2) throw invalid("Error parsing metadata: every pair must be name=value");
    pairs.push([unescapeForm(parts[0] ?? ""), unescapeForm(parts[1] ?? "")]);
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
