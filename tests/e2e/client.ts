import type { RunningPlatform } from "@skerry/testkit";
import type { SandboxOpts } from "e2b";

/** Sandboxes of tests live for an hour. Those of slow tests must not end in the middle, as with the default of five minutes. */
const LIFE_MS = 3_600_000;

/** Options that make the official SDK talk to a test's own platform. */
export function clientOf(platform: RunningPlatform): Pick<SandboxOpts, "apiKey" | "apiUrl" | "sandboxUrl" | "domain" | "timeoutMs"> {
  const { apiUrl, edgeUrl: sandboxUrl, domain } = platform;
  return { apiKey: platform.secrets.apiKey, apiUrl, sandboxUrl, domain, timeoutMs: LIFE_MS };
}

/** Sends a request to the platform API, with the platform's key unless `headers` has another one. */
export async function callApi(
  platform: RunningPlatform,
  path: string,
  options: { method?: string; body?: unknown; raw?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; body: unknown; headers: Headers }> {
  const text = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const response = await fetch(platform.apiUrl + path, {
    method: options.method ?? (text === undefined ? "GET" : "POST"),
    headers: {
      "X-API-Key": platform.secrets.apiKey,
      ...(text === undefined ? {} : { "Content-Type": "application/json" }),
      ...options.headers,
    },
    ...(text === undefined ? {} : { body: text }),
  });
  const answer = await response.text();
  return { status: response.status, body: answer === "" ? undefined : parse(answer), headers: response.headers };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
