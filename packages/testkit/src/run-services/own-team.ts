import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { API_KEY_PREFIX, credentialOf, makeApiKey } from "@skerry/api";
import { openStore } from "@skerry/store";
import type { Platform, RunningPlatform } from "../platform.ts";

/** The platform for a new team, with its own team id and API key. The keys of the user stay those of the operator. */
export async function withOwnTeam(platform: Platform): Promise<RunningPlatform> {
  const { dataDir, logFile, apiUrl, edgeUrl, domain, ports } = platform;
  await using store = await openStore(`sqlite:${join(dataDir, "skerry.db")}`);
  const now = Date.now();
  const teamId = randomUUID();
  const slug = `test-${randomBytes(6).toString("hex")}`;
  await store.identity.putTeam({ id: teamId, slug, name: slug, createdAt: now });
  const apiKey = makeApiKey();
  await store.identity.addApiKey({ ...credentialOf(apiKey, { prefix: API_KEY_PREFIX, name: slug, now }), teamId });
  const secrets = { ...platform.secrets, teamId, apiKey: apiKey.reveal() };
  const env = { ...platform.env, E2B_TEAM_ID: teamId, E2B_API_KEY: apiKey.reveal() };
  return { dataDir, logFile, apiUrl, edgeUrl, domain, ports, secrets, teamSlug: slug, env };
}
