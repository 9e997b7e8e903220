import type { Platform } from "@skerry/testkit";
import { Sandbox } from "e2b";

/** Options that connect the official SDK to this platform. */
export function connection(platform: Platform): { apiKey: string; apiUrl: string; sandboxUrl: string; domain: string } {
  return { apiKey: platform.secrets.apiKey, apiUrl: platform.apiUrl, sandboxUrl: platform.edgeUrl, domain: platform.domain };
}

export function createSandbox(platform: Platform, template = "base"): Promise<Sandbox> {
  return Sandbox.create(template, { ...connection(platform), timeoutMs: 600_000 });
}

export async function echo(sandbox: Sandbox): Promise<void> {
  const { stdout } = await sandbox.commands.run("echo hello");
  if (stdout !== "hello\n") throw new Error(`echo printed ${JSON.stringify(stdout)}`);
}
