// What the operations on secrets read and answer.

import { Secret } from "@skerry/base";
import type { SecretReference, StoredSecret } from "@skerry/store";
import { type Static, Type } from "typebox";
import { publicError, validationError } from "../../../errors.ts";
import { isSecretId, looksLikeSecretId } from "../../../secrets/secret-id.ts";
import type { SecretChange } from "../../../secrets/secret-service.ts";
import type { Confidential } from "../../operation.ts";
import { DateTime, Int32, StringMap } from "../../schemas.ts";

const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const MAX_VALUE_BYTES = 64 * 1024;
const MAX_METADATA = 32;
const MAX_KEY_BYTES = 128;
const MAX_TEXT_BYTES = 1024;
const MAX_METADATA_BYTES = 8192;

/** Answers are not cached, and failures have the texts that clients know. They say nothing about what was sent. */
export const CONFIDENTIAL: Confidential = {
  messages: {
    400: "Invalid secrets request",
    401: "You are not authenticated",
    404: "Secret not found",
    409: "Secret cannot be modified in its current state",
  },
};

const Value = Type.String({ minLength: 1, description: "The value, at most 64 KiB. No answer contains it." });
const Metadata = Type.Optional(
  StringMap("At most 32 entries and 8,192 bytes; keys of at most 128 bytes, values of at most 1,024. They are not encrypted."),
);

export const SecretSchema = Type.Object(
  {
    secretID: Type.String({ description: "The secret's id." }),
    name: Type.String({ description: "The name, in lower case." }),
    currentVersion: Int32({ description: "Grows by one with each new value.", minimum: 1 }),
    metadata: StringMap("The metadata."),
    createdAt: DateTime("When the secret was created."),
    updatedAt: DateTime("When the secret got its present value."),
  },
  { title: "Secret" },
);

export const NewSecretSchema = Type.Object(
  {
    name: Type.String({ description: "1 to 128 letters, digits, `_` and `-`; not beginning with `sec_`. Stored in lower case." }),
    value: Value,
    metadata: Metadata,
  },
  { title: "NewSecret" },
);
export const SecretUpdateSchema = Type.Object({ value: Value, metadata: Metadata }, { title: "SecretUpdate" });
export const SecretParams = Type.Object({ secretID: Type.String({ description: "The secret's id or name." }) });

export function secretNameOf(text: string): string {
  const name = text.toLowerCase();
  if (!NAME.test(text) || looksLikeSecretId(name)) throw validationError("body/name is not a name of a secret");
  return name;
}

/** The id or the name in a path. */
export function secretReferenceOf({ secretID }: Static<typeof SecretParams>): SecretReference {
  if (isSecretId(secretID)) return { id: secretID };
  const name = secretID.toLowerCase();
  if (looksLikeSecretId(name)) throw publicError("not_found", "Secret not found");
  if (!NAME.test(secretID)) throw validationError("path/secretID is neither an id nor a name of a secret");
  return { name };
}

export function secretChangeOf({ value, metadata }: Static<typeof SecretUpdateSchema>): SecretChange {
  if (!value.isWellFormed() || Buffer.byteLength(value) > MAX_VALUE_BYTES) throw validationError("body/value is too long or not Unicode");
  if (metadata !== undefined) assertMetadata(metadata);
  return { value: new Secret(value), metadata };
}

function assertMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata);
  const isText = (text: string, max: number) => Buffer.byteLength(text) <= max && text.isWellFormed() && !text.includes("\0");
  const areFine = entries.every(([key, text]) => key !== "" && isText(key, MAX_KEY_BYTES) && isText(text, MAX_TEXT_BYTES));
  const bytes = entries.reduce((sum, [key, text]) => sum + Buffer.byteLength(key) + Buffer.byteLength(text), 0);
  if (entries.length > MAX_METADATA || bytes > MAX_METADATA_BYTES || !areFine)
    throw validationError("body/metadata is too large or not Unicode");
}

export function encodeSecret(secret: StoredSecret): Static<typeof SecretSchema> {
  return {
    secretID: secret.id,
    name: secret.name,
    currentVersion: secret.version,
    metadata: secret.metadata,
    createdAt: new Date(secret.createdAt).toISOString(),
    updatedAt: new Date(secret.updatedAt).toISOString(),
  };
}
