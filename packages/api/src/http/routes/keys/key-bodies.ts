// What the operations on keys and tokens read and answer.

import type { ListedKey, ListedToken } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { invalid, publicError, validationError } from "../../../errors.ts";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX } from "../../../keys/credential.ts";
import type { NewKey, NewToken } from "../../../keys/key-service.ts";
import { allows, isGrant, KEY_SCOPES, scopesIn } from "../../../keys/scopes.ts";
import { parseMillisecondsFrom } from "../../input/date-time.ts";
import type { OperationRequest, OperationResponse, ResponseSpec } from "../../operation.ts";
import { DateTime, StringMap } from "../../schemas.ts";

/** Each pair is a condition of every list that the key reads. */
const MAX_PAIRS = 16;
const MAX_METADATA_TEXT = 256;

const MaskSchema = Type.Object(
  {
    prefix: Type.String({ description: "The kind of credential: `e2b_` or `sk_e2b_`." }),
    valueLength: Type.Integer({ description: "Number of characters after the prefix." }),
    maskedValuePrefix: Type.String({ description: "The first characters after the prefix." }),
    maskedValueSuffix: Type.String({ description: "The last characters." }),
  },
  { title: "IdentifierMaskingDetails" },
);

export const Name = Type.String({ minLength: 1, maxLength: 256, description: "A name for people." });
const Expiry = Type.Optional(DateTime("When it stops working. Absent: never. An addition of Skerry."));

const Scopes = Type.Optional(
  Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 64,
    description: "What it may do: scopes such as `sandboxes:read`, all of a kind such as `sandboxes:*`, or `*`. An addition of Skerry.",
  }),
);
const SandboxMetadata = Type.Optional(
  StringMap(
    "The only sandboxes that the key reaches: those with all of these pairs of metadata. Sandboxes that it creates get them. An addition of Skerry.",
  ),
);

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
  scopes: Scopes,
  sandboxMetadata: SandboxMetadata,
  memberID: Type.Optional(Type.String({ description: "The user who signed in with it, and whose role limits it. An addition of Skerry." })),
};

const tokenFields = {
  mask: MaskSchema,
  createdAt: DateTime("When the token was created."),
  expiresAt: Expiry,
  scopes: Scopes,
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
    ...tokenFields,
  },
  { title: "CreatedAccessToken" },
);
export const AccessTokenSchema = Type.Object(
  {
    id: Type.String({ description: "The token's id. It is not secret." }),
    name: Name,
    lastUsed: Type.Optional(DateTime("The last use, to the minute. Absent: never used.")),
    ...tokenFields,
  },
  { title: "AccessToken" },
);
export const NewKeySchema = Type.Object(
  { name: Name, expiresAt: Expiry, scopes: Scopes, sandboxMetadata: SandboxMetadata },
  { title: "NewKey" },
);
export const NewTokenSchema = Type.Object({ name: Name, expiresAt: Expiry, scopes: Scopes }, { title: "NewAccessToken" });
export const RenamedKeySchema = Type.Object({ name: Name }, { title: "UpdateTeamAPIKey" });

/** The answer for an id that the caller's team or user does not have. Clients read plain text here. */
export const ID_NOT_FOUND: ResponseSpec = { description: "There is no such id, or it belongs to somebody else.", schema: Type.String() };

export function idNotFound(): OperationResponse {
  return { status: 404, body: "id not found", headers: { "content-type": "text/plain; charset=utf-8" } };
}

type NewKeyRequest = Pick<OperationRequest<unknown, unknown, Static<typeof NewKeySchema>>, "body" | "arrivedAt" | "caller">;

/** The checked values of a body that names a new key. Throws for scopes that an API key can't have, or that the caller lacks. */
export function newKeyOf(request: NewKeyRequest, createdBy?: string): NewKey {
  const { caller, body } = request;
  const sandboxMetadata = metadataOf(body.sandboxMetadata);
  const asked = scopesOf(body) ?? (sandboxMetadata ? ["sandboxes:*"] : null);
  for (const scope of scopesIn(asked ?? ["*"])) {
    if (KEY_SCOPES.includes(scope)) {
      if (caller.kind === "user" && !allows(caller.scopes, scope)) throw lacking(scope);
    } else if (asked?.includes(scope)) throw validationError(`body/scopes: an API key can't have "${scope}"`);
  }
  return { ...namedOf(request, body.name), createdBy, scopes: asked, sandboxMetadata };
}

/** The same for an access token. Without scopes it gets those of the caller. */
export function newTokenOf(request: Omit<NewKeyRequest, "body"> & { readonly body: Static<typeof NewTokenSchema> }): NewToken {
  const { caller, body } = request;
  const own = caller.kind === "user" && !caller.scopes.includes("*") ? caller.scopes : null;
  const asked = scopesOf(body) ?? own;
  const excess = scopesIn(asked ?? ["*"]).find((scope) => caller.kind === "user" && !allows(caller.scopes, scope));
  if (excess !== undefined) throw lacking(excess);
  return { ...namedOf(request, body.name), scopes: asked };
}

function namedOf({ body, arrivedAt }: Pick<NewKeyRequest, "body" | "arrivedAt">, name: string): Pick<NewKey, "name" | "expiresAt"> {
  const expiresAt = body.expiresAt === undefined ? null : parseMillisecondsFrom(body.expiresAt, "body/expiresAt");
  if (expiresAt !== null && expiresAt <= arrivedAt) throw validationError("body/expiresAt must be a time in the future");
  return { name: nameOf({ name }), expiresAt };
}

function scopesOf({ scopes }: { readonly scopes?: readonly string[] }): readonly string[] | null {
  if (scopes === undefined) return null;
  const unknown = scopes.find((scope) => !isGrant(scope));
  if (unknown !== undefined) throw validationError(`body/scopes: there is no scope ${JSON.stringify(unknown)}`);
  return [...new Set(scopes)];
}

function metadataOf(pairs: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> | null {
  if (pairs === undefined) return null;
  const texts = Object.entries(pairs).flat();
  if (texts.length === 0 || texts.length > 2 * MAX_PAIRS) throw validationError(`body/sandboxMetadata must have 1 to ${MAX_PAIRS} pairs`);
  if (texts.some((text) => text.includes("\0") || !text.isWellFormed() || text.length > MAX_METADATA_TEXT)) {
    throw validationError(`body/sandboxMetadata must be valid Unicode without NUL, with at most ${MAX_METADATA_TEXT} characters each`);
  }
  return pairs;
}

function lacking(scope: string): Error {
  return publicError("forbidden", `You can't give away the scope "${scope}", which you do not have`, { detailCode: "missing_scope" });
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
    ...encodeLimits(key),
    ...(key.sandboxMetadata === null ? {} : { sandboxMetadata: key.sandboxMetadata }),
    ...(key.memberId === null ? {} : { memberID: key.memberId }),
  };
}

export function encodeToken(
  token: Omit<ListedToken, "lastUsedAt"> & { readonly lastUsedAt?: number | null },
): Static<typeof AccessTokenSchema> {
  return {
    id: token.id,
    name: token.name,
    mask: encodeMask(token.mask, ACCESS_TOKEN_PREFIX),
    createdAt: new Date(token.createdAt).toISOString(),
    ...(token.lastUsedAt == null ? {} : { lastUsed: new Date(token.lastUsedAt).toISOString() }),
    ...encodeLimits(token),
  };
}

function encodeLimits({ expiresAt, scopes }: Pick<ListedToken, "expiresAt" | "scopes">): { expiresAt?: string; scopes?: string[] } {
  return {
    ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    ...(scopes === null ? {} : { scopes: [...scopes] }),
  };
}
