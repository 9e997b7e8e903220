/** `i` and 20 characters `[a-z0-9]`. Only `parseSandboxId` and `sandboxIdFrom` make one: the pattern is also the path-safety check. */
export type SandboxId = string & { readonly __brand: "SandboxId" };

const SANDBOX_ID = /^[a-z0-9]{1,64}$/;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
const RANDOM_LENGTH = 20;

/**
 * Reads a sandbox id as clients write it: the bare id, or the legacy `<id>-<clientID>`.
 * Returns undefined when it is neither.
 */
export function parseSandboxId(text: string): SandboxId | undefined {
  const parts = text.split("-");
  const id = parts[0] ?? "";
  if (parts.length > 2 || !SANDBOX_ID.test(id)) return undefined;
  if (parts.length === 2 && !SANDBOX_ID.test(parts[1] ?? "")) return undefined;
  return id as SandboxId;
}

/**
 * A new id from random bytes; all ids have one length, because runsc finds sandboxes by prefix.
 * Bytes above the last whole multiple of the alphabet are skipped, so every character is equally likely.
 */
export function sandboxIdFrom(randomBytes: (length: number) => Uint8Array): SandboxId {
  let id = "i";
  const limit = 256 - (256 % ALPHABET.length);
  while (id.length < RANDOM_LENGTH + 1) {
    for (const byte of randomBytes(RANDOM_LENGTH)) {
      if (byte < limit && id.length < RANDOM_LENGTH + 1) id += ALPHABET[byte % ALPHABET.length];
    }
  }
  return id as SandboxId;
}

/** The id of an image that a node keeps: 20 of `a-z` and `0-9`. */
export function imageIdFrom(randomBytes: (length: number) => Uint8Array): string {
  return sandboxIdFrom(randomBytes).slice(1);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}
