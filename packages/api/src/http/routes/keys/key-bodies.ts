// What the operations on keys and tokens read and answer.

import type { ListedKey } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { invalid, validationError } from "../../../errors.ts";
import { API_KEY_PREFIX } from "../../../keys/credential.ts";
import type { NewKey } from "../../../keys/key-service.ts";
import { parseMillisecondsFrom } from "../../input/date-time.ts";
import type { OperationRequest, OperationResponse, ResponseSpec } from "../../operation.ts";
import { DateTime } from "../../schemas.ts";

const MaskSchema = Type.Object(
  {
    prefix: Type.String({ description: "The kind of credential: `e2b_` or `sk_e2b_`." }),
    valueLength: Type.Integer({ description: "Number of characters after the prefix." }),
    maskedValuePrefix: Type.String({ description: "The first characters after the prefix." }),
    maskedValueSuffix: Type.String({ description: "The last characters." }),
  },
  { title: "IdentifierMaskingDetails" },
);

const Name = Type.String({ minLength: 1, maxLength: 256, description: "A name for people." });
const Expiry = Type.Optional(DateTime("When it stops working. Absent: never. An addition of Skerry."));

const keyFields = {
  id: Type.String({ description: "The key's id. It is not secret." }),
  name: Name,
  mask: MaskSchema,
  createdAt: DateTime("When the key was created."),
  createdBy: Type.Optional(
    Type.Object(
      { id: Type.String({ description: "The user's id." }), email: Type.Union([Type.String(), Type.Null()]) },
      { title: "TeamUser", description: "The user who created the key. Absent: the operator." },
    ),
  ),
  lastUsed: Type.Optional(DateTime("The last use, to the minute. Absent: never used.")),
  expiresAt: Expiry,
};

export const ApiKeySchema = Type.Object(keyFields, { title: "TeamAPIKey" });
export const CreatedApiKeySchema = Type.Object(
  { ...keyFields, key: Type.String({ description: "The key. It is shown only here." }) },
  { title: "CreatedTeamAPIKey" },
);
export const CreatedAccessTokenSchema = Type.Object(
  {
    id: Type.String({ description: "The token's id. It is not secret." }),
    name: Name,
    token: Type.String({ description: "The token. It is shown only here." }),
    mask: MaskSchema,
    createdAt: DateTime("When the token was created."),
    expiresAt: Expiry,
  },
  { title: "CreatedAccessToken" },
);
export const NewKeySchema = Type.Object({ name: Name, expiresAt: Expiry }, { title: "NewKey" });
export const RenamedKeySchema = Type.Object({ name: Name }, { title: "UpdateTeamAPIKey" });

/** The answer for an id that the caller's team or user does not have. Clients read plain text here. */
export const ID_NOT_FOUND: ResponseSpec = { description: "There is no such id, or it belongs to somebody else.", schema: Type.String() };

export function idNotFound(): OperationResponse {
  return { status: 404, body: "id not found", headers: { "content-type": "text/plain; charset=utf-8" } };
}

/** The checked values of a body that names a new key or token. */
export function newKeyOf(
  { body, arrivedAt }: Pick<OperationRequest<unknown, unknown, Static<typeof NewKeySchema>>, "body" | "arrivedAt">,
  createdBy?: string,
): NewKey {
  const expiresAt = body.expiresAt === undefined ? null : parseMillisecondsFrom(body.expiresAt, "body/expiresAt");
  if (expiresAt !== null && expiresAt <= arrivedAt) throw validationError("body/expiresAt must be a time in the future");
  return { name: nameOf(body), createdBy, expiresAt };
}

export function nameOf({ name }: { readonly name: string }): string {
  if (name.includes("\0") || !name.isWellFormed()) throw validationError("body/name must be valid Unicode without NUL");
  return name;
}

export function uuidOf(id: string, what: string): string {
  if (!isUuid(id)) throw invalid(`Invalid ${what} ID`);
  return id.toLowerCase();
}

export function encodeMask(mask: ListedKey["mask"], prefix: string): Static<typeof MaskSchema> {
  return { prefix, valueLength: mask.length, maskedValuePrefix: mask.prefix, maskedValueSuffix: mask.suffix };
}

export function encodeApiKey(key: ListedKey): Static<typeof ApiKeySchema> {
  return {
    id: key.id,
    name: key.name,
    mask: encodeMask(key.mask, API_KEY_PREFIX),
    createdAt: new Date(key.createdAt).toISOString(),
    ...(key.createdBy === null ? {} : { createdBy: { id: key.createdBy, email: null } }),
    ...(key.lastUsedAt === null ? {} : { lastUsed: new Date(key.lastUsedAt).toISOString() }),
    ...encodeExpiry(key.expiresAt),
  };
}

export function encodeExpiry(expiresAt: number | null | undefined): { expiresAt?: string } {
  return expiresAt == null ? {} : { expiresAt: new Date(expiresAt).toISOString() };
}
