import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { OperatorError } from "@skerry/setup/folder";
import { AGENT_PORT } from "@skerry/wire";
import { Process } from "@skerry/wire/process";

/** The host has no room for another sandbox. The platform stays up, because killing sandboxes needs it. */
export class NoRoomError extends OperatorError {}

/** Creates a sandbox through the public API, runs `echo` in it and kills it, as a client would. Throws NoRoomError. */
export async function runFirstSandbox(options: {
  api: string;
  edge: string;
  apiKey: string;
}): Promise<{ sandboxId: string; firstOutputMs: number }> {
  const { api, edge, apiKey } = options;
  const startedAt = performance.now();
  const created = await request(`${api}/v2/sandboxes`, { method: "POST", apiKey, body: { templateID: "base", timeout: 60 } });
  const { sandboxID, envdAccessToken } = created as { sandboxID: string; envdAccessToken?: string };
  try {
    const output = await echo({ edge, sandboxID, token: envdAccessToken ?? "" });
    if (output !== "hello\n")
      throw new OperatorError(`\`echo hello\` printed ${JSON.stringify(output.slice(0, 200))} in the first sandbox`);
    return { sandboxId: sandboxID, firstOutputMs: performance.now() - startedAt };
  } finally {
    await request(`${api}/sandboxes/${sandboxID}`, { method: "DELETE", apiKey });
  }
}

async function echo({ edge, sandboxID, token }: { edge: string; sandboxID: string; token: string }): Promise<string> {
  const transport = createConnectTransport({
    baseUrl: edge,
    httpVersion: "1.1",
    interceptors: [
      (next) => (call) => {
        call.header.set("E2b-Sandbox-Id", sandboxID);
        call.header.set("E2b-Sandbox-Port", String(AGENT_PORT));
        call.header.set("X-Access-Token", token);
        return next(call);
      },
    ],
  });
  const client = createClient(Process, transport);
  const chunks: Uint8Array[] = [];
  const process = { cmd: "/bin/bash", args: ["-l", "-c", "echo hello"] };
  for await (const { event } of client.start({ process }, { timeoutMs: 30_000 })) {
    if (event?.event.case === "data" && event.event.value.output.case === "stdout") chunks.push(event.event.value.output.value);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function request(url: string, options: { method: string; apiKey: string; body?: object }): Promise<unknown> {
  const { method, apiKey, body } = options;
  const response = await fetch(url, {
    method,
    headers: { "X-API-Key": apiKey, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  const NamedError = response.status === 503 && method === "POST" ? NoRoomError : OperatorError;
  if (!response.ok) throw new NamedError(`${method} ${new URL(url).pathname} answered ${response.status}: ${text.slice(0, 300)}`);
  return text === "" ? undefined : JSON.parse(text);
}
