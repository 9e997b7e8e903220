/** `i` and 20 characters of `[a-z0-9]`. Only `parseSandboxId` and `sandboxIdFrom` create one, because their pattern makes it safe in paths. */
export type SandboxId = string & { readonly __brand: "SandboxId" };

const SANDBOX_ID = /^[a-z0-9]{1,64}$/;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
const RANDOM_LENGTH = 20;

/** Parses a sandbox id as clients send it: the bare id, or the legacy form `<id>-<clientID>`. Returns undefined for other texts. */
export function parseSandboxId(text: string): SandboxId | undefined {
  const parts = text.split("-");
  const id = parts[0] ?? "";
  if (parts.length > 2 || !SANDBOX_ID.test(id)) return undefined;
  if (parts.length === 2 && !SANDBOX_ID.test(parts[1] ?? "")) return undefined;
  return id as SandboxId;
}

/**
 * Makes an id from random bytes. All ids have the same length, because runsc finds sandboxes by prefix. Bytes above the last
 * multiple of the alphabet's length are skipped, so that all characters are equally likely.
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

/** Makes the id of an image on a node: 20 characters of `a-z` and `0-9`. */
export function imageIdFrom(randomBytes: (length: number) => Uint8Array): string {
  return sandboxIdFrom(randomBytes).slice(1);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}
