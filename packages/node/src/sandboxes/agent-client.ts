// The one call that the node makes to a sandbox's agent: handing over its identity. Answers by a guest are not trusted:
// status only, body dropped.

import { request } from "node:http";
import { asError, errnoOf, PlatformError } from "@skerry/base";
import { AGENT_PORT } from "@skerry/wire";

export interface AgentIdentity {
  readonly sandboxId: string;
  readonly templateId: string;
  readonly envVars: Readonly<Record<string, string>>;
  readonly accessToken: string;
  readonly defaultUser: string;
  readonly defaultWorkdir: string;
  readonly memoryMb: number;
}

const POLL_MS = 3;
const ATTEMPT_TIMEOUT_MS = 5_000;

/**
 * Waits until the agent answers, and initialises it. `isAlive` ends the wait early when the sandbox has ended.
 * Throws PlatformError("agent_failed").
 */
export async function initialiseAgent(options: {
  address: string;
  identity: AgentIdentity;
  timeoutMs: number;
  isAlive: () => boolean;
}): Promise<void> {
  const { envVars, accessToken, defaultUser, defaultWorkdir, sandboxId, templateId, memoryMb } = options.identity;
  const deadline = Date.now() + options.timeoutMs;
  for (;;) {
    const body = JSON.stringify({
      envVars,
      accessToken,
      defaultUser,
      defaultWorkdir,
      sandboxId,
      templateId,
      memoryMB: memoryMb,
      timestamp: new Date().toISOString(),
    });
    try {
      const status = await post(options.address, "/init", body);
      if (status === 204) return;
      throw new PlatformError("agent_failed", `the agent refused its identity with status ${status}`);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      // Nothing listens yet. Everything else (a reset while it starts) is the same until the deadline.
      if (!options.isAlive())
        throw new PlatformError("agent_failed", "the sandbox ended before its agent answered", { cause: asError(error) });
      if (Date.now() > deadline) {
        throw new PlatformError(
          "agent_failed",
          `the agent did not answer in ${options.timeoutMs} ms (${errnoOf(error) ?? "no error code"})`,
          {
            cause: asError(error),
          },
        );
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function post(address: string, path: string, body: string): Promise<number> {
  return send({ address, path, method: "POST", body, timeoutMs: ATTEMPT_TIMEOUT_MS });
}

/** Settles whatever the guest answers: a refused upgrade, half an answer and silence are errors like any other. */
function send(call: { address: string; path: string; method: string; body: string; timeoutMs: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: call.address,
      port: AGENT_PORT,
      path: call.path,
      method: call.method,
      agent: false,
      headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(call.body) },
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${call.timeoutMs} ms`)), call.timeoutMs);
    outgoing.once("response", (response) => {
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    outgoing.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new Error("the agent's port answered with an upgrade"));
    });
    outgoing.on("error", reject);
    outgoing.once("close", () => {
      clearTimeout(timer);
      reject(new Error("the connection ended without an answer"));
    });
    outgoing.end(call.body);
  });
}
