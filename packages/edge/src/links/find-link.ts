import type { Client } from "@connectrpc/connect";
import type { RouteService } from "@skerry/wire/control";
import type { FindLink } from "../ports.ts";

const TIMEOUT_MS = 10_000;

/** Finds links with the RPC of the control plane. */
export function findLinkFrom(client: Client<typeof RouteService>): FindLink {
  return async ({ sandboxId, port }, { linkId, digest }) => {
    const request = { sandboxId, port, link: { linkId, tokenSha256: new Uint8Array(digest) } };
    const { link } = await client.findLink(request, { timeoutMs: TIMEOUT_MS });
    return link && { expiresInMs: Number(link.expiresInMs), methods: link.methods };
  };
}
