// Encrypts values with AES-256-GCM. The first key encrypts; all keys decrypt. What a value belongs to is authenticated with it, so that the
// encrypted form of one secret is no valid form of another one.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { PlatformError, Secret } from "@skerry/base";
import type { SealedValue } from "@skerry/store";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FORMAT = "v1";

export type EncryptionKey = Secret<Buffer>;

export function newEncryptionKey(): string {
  return randomBytes(KEY_BYTES).toString("base64");
}

/** Reads keys that are separated by commas or line breaks: each 32 bytes in base64 or hex. Lines that begin with `#` are comments. */
export function parseEncryptionKeys(text: string, source: string): readonly EncryptionKey[] {
  const lines = text.split("\n").filter((line) => !line.trimStart().startsWith("#"));
  const words = lines.flatMap((line) => line.split(",").map((word) => word.trim())).filter((word) => word !== "");
  const keys = words.map((word, index) => {
    const bytes = Buffer.from(word, /^[0-9a-fA-F]{64}$/.test(word) ? "hex" : "base64");
    const isWhole = /^[0-9a-fA-F]{64}$/.test(word) || /^[A-Za-z0-9+/]{43}=?$/.test(word);
    // The message must not contain the key.
    if (!isWhole || bytes.length !== KEY_BYTES) {
      throw new PlatformError("config_invalid", `${source}: key ${index + 1} must be ${KEY_BYTES} bytes in base64 or hex`);
    }
    return new Secret(bytes);
  });
  if (keys.length === 0) throw new PlatformError("config_invalid", `${source} has no key`);
  return keys;
}

/** Names a key without revealing it. */
function idOf(key: EncryptionKey): string {
  return createHash("sha256").update("skerry encryption key\0").update(key.reveal()).digest("hex").slice(0, 16);
}

export class SecretBox {
  readonly #keys: ReadonlyMap<string, EncryptionKey>;
  readonly #current: EncryptionKey;
  /** The id of the key that encrypts. */
  readonly keyId: string;
  constructor(keys: readonly EncryptionKey[]) {
    const [current] = keys;
    if (!current) throw new PlatformError("config_invalid", "there is no encryption key");
    this.#current = current;
    this.keyId = idOf(current);
    this.#keys = new Map(keys.map((key) => [idOf(key), key]));
  }

  has(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** `about` says what the value belongs to, and must be the same at its opening. */
  seal(value: Secret, about: readonly string[]): SealedValue {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#current.reveal(), nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associated(about));
    const encrypted = Buffer.concat([cipher.update(value.reveal(), "utf8"), cipher.final(), cipher.getAuthTag()]);
    return { sealed: `${FORMAT}.${nonce.toString("base64url")}.${encrypted.toString("base64url")}`, keyId: this.keyId };
  }

  /** Throws when the key is unknown, or when the value was changed or belongs to something else. */
  open({ sealed, keyId }: SealedValue, about: readonly string[]): Secret {
    const key = this.#keys.get(keyId);
    const [format, nonce = "", rest = ""] = sealed.split(".");
    const bytes = Buffer.from(rest, "base64url");
    if (!key) throw new PlatformError("internal", `a value is encrypted with the key ${keyId}, which this process does not have`);
    if (format !== FORMAT || bytes.length < TAG_BYTES) throw new PlatformError("internal", "an encrypted value is damaged");
    try {
      const decipher = createDecipheriv(ALGORITHM, key.reveal(), Buffer.from(nonce, "base64url"), { authTagLength: TAG_BYTES });
      decipher.setAAD(associated(about));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      return new Secret(Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString("utf8"));
    } catch (cause) {
      throw new PlatformError("internal", "an encrypted value is damaged, or belongs to something else", { cause });
    }
  }
}

/** JSON, because no two lists have the same text. */
function associated(about: readonly string[]): Buffer {
  return Buffer.from(JSON.stringify(about), "utf8");
}
