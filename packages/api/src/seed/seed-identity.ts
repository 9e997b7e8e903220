import { type Clock, PlatformError, type Secret } from "@skerry/base";
import type { Store } from "@skerry/store";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, credentialOf } from "../keys/credential.ts";

export interface SeedSecrets {
  readonly teamId: string;
  readonly userId: string;
  readonly apiKey: Secret;
  readonly accessToken: Secret;
}

const TEAM_SLUG = "default";
const SEEDED = "made at first start";

/** The first team of a database and its first member; undefined for a database that no platform has used. */
export async function findOwner({ identity }: Store): Promise<Pick<SeedSecrets, "teamId" | "userId"> | undefined> {
  const team = await identity.findTeamBySlug(TEAM_SLUG);
  const member = team && (await identity.findFirstMember(team.id));
  return team && member && { teamId: team.id, userId: member.userId };
}

/**
 * Creates the team and the user that every platform starts with. Idempotent. A key or token that was replaced in the secrets file becomes
 * invalid; keys and tokens that were created by other means stay. A deleted key stays deleted, also while the secrets file still has it.
 */
export async function seedIdentity(store: Store, secrets: SeedSecrets, clock: Clock): Promise<void> {
  const { identity } = store;
  const { teamId, userId } = secrets;
  const now = clock.now();
  const holder = await identity.findTeamBySlug(TEAM_SLUG);
  if (holder && holder.id !== teamId) {
    throw new PlatformError(
      "config_invalid",
      "the database belongs to another secrets file: its default team has another id. Put its own secrets.json back " +
        "(secrets.backup.json beside it is a copy), or make new keys for this database: ./skerry renew-secrets",
    );
  }
  await identity.putTeam({ id: teamId, slug: TEAM_SLUG, name: "Default", createdAt: now });
  await identity.putUser({ id: userId, name: "Operator", createdAt: now });
  await identity.putMembership({ teamId, userId, isDefault: true });
  const key = credentialOf(secrets.apiKey, { prefix: API_KEY_PREFIX, name: SEEDED, now });
  await identity.addApiKey({ ...key, teamId, isSeeded: true });
  await identity.dropOtherSeededKeys({ teamId, hash: key.hash });
  const token = credentialOf(secrets.accessToken, { prefix: ACCESS_TOKEN_PREFIX, name: SEEDED, now });
  await identity.addAccessToken({ ...token, userId, isSeeded: true });
  await identity.dropOtherSeededTokens({ userId, hash: token.hash });
}
