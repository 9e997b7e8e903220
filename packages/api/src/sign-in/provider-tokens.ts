// Verifies tokens of the identity provider. ID tokens and access tokens in the form of a JWT are accepted.

import type { Clock } from "@skerry/base";
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { publicError } from "../errors.ts";
import { ProviderAway } from "./fetch-json.ts";
import type { OidcConfig } from "./oidc-config.ts";
import { groupsOf } from "./roles-of-groups.ts";

/** Only signatures that the provider's public keys verify: neither `none` nor HMAC, whose secret a public key must never become. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"];

/** Other types are tokens for other purposes, such as a logout. */
const TYPES = new Set(["jwt", "at+jwt", "application/at+jwt"]);

const MAX_SUBJECT = 255;

/** What a token says about the user. */
export interface ProviderUser {
  readonly subject: string;
  readonly name: string;
  readonly email: string | null;
  readonly groups: readonly string[];
  /** In ms. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Whether the credential has the form of a signed token. Tokens of this platform do not. */
export function isProviderToken(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

/** Throws 401 for a token that is not valid now, and 503 while the provider's keys are not known. */
export async function verifyToken(
  config: OidcConfig,
  { token, findKey, clock }: { readonly token: string; readonly findKey: JWTVerifyGetKey; readonly clock: Clock },
): Promise<ProviderUser> {
  try {
    const { payload, protectedHeader } = await verified(token, findKey, {
      issuer: config.issuer,
      audience: [...config.audiences],
      algorithms: ALGORITHMS,
      requiredClaims: ["sub", "exp", "iat"],
      clockTolerance: config.clockSkewMs / 1000,
      maxTokenAge: config.maxTokenAgeMs / 1000,
      currentDate: new Date(clock.now()),
    });
    if (protectedHeader.typ !== undefined && !TYPES.has(protectedHeader.typ.toLowerCase()))
      throw refused("It is a token for another purpose");
    // Such a token counts only together with a proof that its holder has a certain key.
    if (payload.cnf !== undefined) throw refused("Tokens that are bound to a key of their holder are not supported");
    return userOf(payload, config);
  } catch (error) {
    if (error instanceof errors.JOSEError) throw refused(reasonOf(error), error);
    if (error instanceof ProviderAway) {
      throw publicError(
        "provider_unavailable",
        "The identity provider does not answer now, so your sign-in cannot be verified; try again",
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}

type Options = NonNullable<Parameters<typeof jwtVerify>[2]>;

/** A token that does not name its key may be of any of them. */
async function verified(token: string, findKey: JWTVerifyGetKey, options: Options) {
  try {
    return await jwtVerify(token, findKey, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        return await jwtVerify(token, key, options);
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

function userOf(payload: JWTPayload, config: OidcConfig): ProviderUser {
  const { sub = "", iat = 0, exp = 0 } = payload;
  if (!isText(sub, MAX_SUBJECT)) throw refused("Its subject is not a text");
  const email = payload.email_verified !== false && isText(payload.email, 320) && /^\S+@\S+$/.test(payload.email) ? payload.email : null;
  const name = [payload.name, payload.preferred_username, email, sub].find((text) => isText(text, 256)) as string;
  return {
    subject: sub,
    name,
    email,
    groups: groupsOf(payload, config.groupsClaim),
    issuedAt: iat * 1000,
    expiresAt: Math.min(exp * 1000, iat * 1000 + config.maxTokenAgeMs),
  };
}

function isText(value: unknown, max: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= max && value.isWellFormed() && !value.includes("\0");
}

function reasonOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return "The token has expired";
  if (error instanceof errors.JWTClaimValidationFailed) {
    const isOfTheFuture = error.reason === "check_failed" && (error.claim === "nbf" || error.claim === "iat");
    if (isOfTheFuture) return "The token is not valid yet: compare the clocks of this host and of the provider";
    return `Its claim "${error.claim}" is missing or not the expected one`;
  }
  if (error instanceof errors.JWKSNoMatchingKey) return "The provider has no such key";
  return "It is not signed by the provider";
}

function refused(reason: string, cause?: unknown): Error {
  return publicError("unauthenticated", `Invalid auth provider token.\n${reason}`, { cause });
}
