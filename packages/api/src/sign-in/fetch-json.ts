import { asError } from "@skerry/base";

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 1024 * 1024;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** The identity provider gave no usable answer. */
export class ProviderAway extends Error {
  constructor(why: string, options?: { readonly cause: unknown }) {
    super(why, options);
    this.name = "ProviderAway";
  }
}

/** Whether keys from this address can be trusted: somebody between could replace those of an address without TLS. */
export function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.has(url.hostname));
}

/** Throws ProviderAway. */
export async function fetchJson(url: string): Promise<object> {
  if (!isSafeUrl(url)) throw new ProviderAway(`${url} is not an https address`);
  try {
    const response = await fetch(url, {
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { Accept: "application/json" },
    });
    if (!response.ok) throw new ProviderAway(`${url} answered ${response.status}`);
    const parsed: unknown = JSON.parse(await readText(response));
    if (typeof parsed !== "object" || parsed === null) throw new ProviderAway(`${url} is no JSON object`);
    return parsed;
  } catch (error) {
    if (error instanceof ProviderAway) throw error;
    const { cause, message } = asError(error);
    throw new ProviderAway(`${url}: ${cause instanceof Error ? cause.message : message}`, { cause: error });
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new ProviderAway(`${response.url} has more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
