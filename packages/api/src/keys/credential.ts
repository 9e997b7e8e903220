import { createHash, createHmac, randomBytes, randomUUID } from "node:crypto";
import { Secret } from "@skerry/base";
import type { Credential, CredentialMask } from "@skerry/store";

export const API_KEY_PREFIX = "e2b_";
export const ACCESS_TOKEN_PREFIX = "sk_e2b_";

const SECRET_BYTES = 20;

export type ParsedCredential =
  | { readonly kind: "hash"; readonly hash: string }
  | { readonly kind: "malformed" }
  | { readonly kind: "not-hex" };

/** The hash by which a key or token is looked up: the SHA-256 of the bytes that its hex part encodes. */
export function parseCredential(text: string, prefix: string): ParsedCredential {
  if (!text.startsWith(prefix)) return { kind: "malformed" };
  const hex = text.slice(prefix.length);
  if (hex === "" || hex.length % 2 !== 0 || !/^[0-9a-f]+$/i.test(hex)) return { kind: "not-hex" };
  return { kind: "hash", hash: createHash("sha256").update(Buffer.from(hex, "hex")).digest("hex") };
}

export function makeApiKey(): Secret {
  return new Secret(API_KEY_PREFIX + randomBytes(SECRET_BYTES).toString("hex"));
}

export function makeAccessToken(): Secret {
  return new Secret(ACCESS_TOKEN_PREFIX + randomBytes(SECRET_BYTES).toString("hex"));
}

/** The token that a sandbox's agent asks for. It is derived from the sandbox's id: every connect gives the same token, and nothing stores it. */
export function accessTokenOf(tokenSeed: Secret, sandboxId: string): string {
  return createHmac("sha256", tokenSeed.reveal()).update(`access:${sandboxId}`).digest("hex");
}

/** The token that traffic to the ports of a private sandbox must carry. Derived like the agent's token, and independent of it. */
export function trafficTokenOf(tokenSeed: Secret, sandboxId: string): string {
  return createHmac("sha256", tokenSeed.reveal()).update(`traffic:${sandboxId}`).digest("hex");
}

/** A key or token of which the middle is not shown. */
export function shownMask(prefix: string, mask: CredentialMask): string {
  return `${prefix}${mask.prefix}…${mask.suffix}`;
}

/** The same for one that is not stored. Precondition: it has the form `<prefix><hex>`. */
export function maskOf(text: string, prefix: string): string {
  const hex = text.slice(prefix.length);
  // Of a short one, hardly anything could be hidden.
  return hex.length < 16 ? `${prefix}…` : shownMask(prefix, { length: hex.length, prefix: hex.slice(0, 2), suffix: hex.slice(-4) });
}

/** The part of a key or token that is stored. Throws when the secret does not have the form `<prefix><hex>`. */
export function credentialOf(secret: Secret, about: { prefix: string; name: string; now: number }): Credential {
  const parsed = parseCredential(secret.reveal(), about.prefix);
  if (parsed.kind !== "hash") throw new Error(`a key or token must be ${about.prefix} and an even number of hex digits`);
  const visible = secret.reveal().slice(about.prefix.length);
  return {
    id: randomUUID(),
    name: about.name,
    hash: parsed.hash,
    mask: { length: visible.length, prefix: visible.slice(0, 2), suffix: visible.slice(-4) },
    createdAt: about.now,
  };
}
