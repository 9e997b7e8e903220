import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Platform } from "@skerry/testkit";
import { AGENT_PORT } from "@skerry/wire";
import { Filesystem } from "@skerry/wire/filesystem";
import { Process } from "@skerry/wire/process";
import type { Sandbox } from "e2b";

/** A sandbox with the clients that the measurements need. */
export interface AgentSandbox {
  readonly sdk: Sandbox;
  readonly edgeUrl: string;
  readonly process: Client<typeof Process>;
  readonly filesystem: Client<typeof Filesystem>;
  /** Headers that lead a request through the edge to a port of the sandbox. */
  headers(port?: number): Record<string, string>;
  /** Runs a shell command as root and returns its output. */
  shell(command: string): Promise<string>;
}

export async function openAgentSandbox(platform: Platform, sdk: Sandbox): Promise<AgentSandbox> {
  const { envdAccessToken = "" } = sdk as unknown as { envdAccessToken?: string };
  const headers = (port: number = AGENT_PORT) => ({
    "E2b-Sandbox-Id": sdk.sandboxId,
    "E2b-Sandbox-Port": String(port),
    "X-Access-Token": envdAccessToken,
  });
  const transport = createConnectTransport({
    baseUrl: platform.edgeUrl,
    httpVersion: "1.1",
    useBinaryFormat: true,
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(headers())) request.header.set(name, value);
        return next(request);
      },
    ],
  });
  return {
    sdk,
    edgeUrl: platform.edgeUrl,
    headers,
    process: createClient(Process, transport),
    filesystem: createClient(Filesystem, transport),
    shell: async (command) => (await sdk.commands.run(command, { user: "root", timeoutMs: 600_000 })).stdout,
  };
}
