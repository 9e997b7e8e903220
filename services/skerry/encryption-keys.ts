import { readFile } from "node:fs/promises";
import { type EncryptionKey, newEncryptionKey, parseEncryptionKeys } from "@skerry/api";
import { asError, PlatformError } from "@skerry/base";
import { dataFolder, ensureKeyFile } from "@skerry/setup/folder";
import type { ServeConfig } from "./config.ts";

/** The keys of the vault: from the settings, or from the data folder's own file, which the first start makes. The first key encrypts. */
export async function encryptionKeysOf(
  config: Pick<ServeConfig, "dataDir" | "encryptionKeys" | "encryptionKeysFile">,
): Promise<readonly EncryptionKey[]> {
  const { encryptionKeys, encryptionKeysFile } = config;
  if (encryptionKeys) return parseEncryptionKeys(encryptionKeys.reveal(), "SKERRY_ENCRYPTION_KEYS");
  const path = encryptionKeysFile ?? dataFolder(config.dataDir).encryptionKeysFile;
  let text: string;
  try {
    text = encryptionKeysFile === undefined ? await ensureKeyFile(path, newEncryptionKey) : await readFile(path, "utf8");
  } catch (error) {
    const message = `the file of encryption keys ${path} can't be ${encryptionKeysFile === undefined ? "read or made" : "read"}: see SKERRY_ENCRYPTION_KEYS_FILE`;
    throw new PlatformError("config_invalid", message, { cause: asError(error) });
  }
  return parseEncryptionKeys(text, path);
}
