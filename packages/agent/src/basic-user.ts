import { findUser, UnknownUserError } from "./accounts/accounts.ts";

/** The user name of `Authorization: Basic …`; undefined when the header is missing or malformed. The password is ignored. */
export function basicName(header: string | undefined): string | undefined {
  const match = /^basic +([A-Za-z0-9+/_-]*={0,2})$/i.exec(header ?? "");
  if (!match) return undefined;
  const text = Buffer.from(match[1] ?? "", "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : text.slice(0, colon);
}

/** The error message for credentials that name an unknown user, on every route; undefined when the credentials are acceptable. */
export function credentialProblem(authorization: string | undefined): string | undefined {
  const name = basicName(authorization);
  if (name === undefined) return undefined;
  try {
    findUser(name);
    return undefined;
  } catch (error) {
    if (error instanceof UnknownUserError) return `invalid username: '${name}'`;
    throw error;
  }
}
