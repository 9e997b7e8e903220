import type { Client } from "@connectrpc/connect";
import { parseSandboxId } from "@skerry/wire";
import type { RouteService } from "@skerry/wire/control";
import type { FindSigner } from "../ports.ts";

/** Timeout of the RPC. The search itself takes milliseconds. */
const TIMEOUT_MS = 10_000;

/** Finds signers with the RPC of the control plane. */
export function findSignerFrom(client: Client<typeof RouteService>): FindSigner {
  return async ({ expiration, ...file }) => {
    const request = { ...file, ...(expiration === undefined ? {} : { expiration: BigInt(expiration) }) };
    const { sandboxId } = await client.findSigner(request, { timeoutMs: TIMEOUT_MS });
    return parseSandboxId(sandboxId);
  };
}
