import { type GroupGrant, isSafeProviderUrl, type OidcConfig } from "@skerry/api";
import type { ConfigReader } from "@skerry/base";
import { ROLES, type Role } from "@skerry/store";

const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Reads how users of an identity provider sign in. Undefined: they do not. */
export function readOidc(reader: ConfigReader): OidcConfig | undefined {
  const issuer = reader.optional("OIDC_ISSUER");
  const audiences = reader.list("OIDC_AUDIENCE", []);
  const grants = reader.list("OIDC_TEAMS", []).map((entry) => readGrant(entry, reader));
  const groupsClaim = reader.string("OIDC_GROUPS_CLAIM", "groups");
  const clockSkewMs = reader.integer("OIDC_CLOCK_SKEW_SECONDS", 60, { min: 0, max: 600 }) * 1000;
  const maxTokenAgeMs = reader.integer("OIDC_MAX_TOKEN_HOURS", 24, { min: 1, max: 720 }) * 3_600_000;
  if (issuer === undefined) {
    if (audiences.length + grants.length > 0) reader.problem("SKERRY_OIDC_AUDIENCE and SKERRY_OIDC_TEAMS need SKERRY_OIDC_ISSUER");
    return undefined;
  }
  if (!isSafeProviderUrl(issuer)) {
    reader.problem(`SKERRY_OIDC_ISSUER takes an https address such as https://login.example.com, not "${issuer}"`);
  }
  if (audiences.length === 0) reader.problem("SKERRY_OIDC_AUDIENCE must name the client whose tokens are accepted");
  if (grants.length === 0) reader.problem("SKERRY_OIDC_TEAMS must say which groups have which role, as in staff=default:developer");
  return { issuer, audiences, groupsClaim, grants: grants.filter((grant) => grant !== undefined), clockSkewMs, maxTokenAgeMs };
}

/** `group=team:role`. The name of a group can have `=` and `:` itself. */
function readGrant(entry: string, reader: ConfigReader): GroupGrant | undefined {
  const [, group = "", teamSlug = "", role = ""] = /^(.+)=([^=:]+):([a-z]+)$/.exec(entry) ?? [];
  if (SLUG.test(teamSlug) && ROLES.some((known) => known === role)) return { group, teamSlug, role: role as Role };
  reader.problem(`SKERRY_OIDC_TEAMS takes entries such as staff=default:developer, with a role of ${ROLES.join(", ")}, not "${entry}"`);
  return undefined;
}
