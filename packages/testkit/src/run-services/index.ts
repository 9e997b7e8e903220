// For test files: what the whole run shares.

import { readFileSync } from "node:fs";
import type { RunningPlatform } from "../platform.ts";
import { callRunServices } from "./call.ts";

/**
 * A platform that other test files use at the same time, seen by a team of this file alone: lists show its own sandboxes only. Whoever
 * kills, restarts or configures a platform, or counts what it has on the host, needs one of their own from `startPlatform`.
 */
export interface SharedPlatform extends RunningPlatform, AsyncDisposable {
  /** Everything that the platform has written so far, about other files' sandboxes too. */
  logs(): string;
}

/** The run's platform of this runtime. Disposing it kills the team's sandboxes, so that they take nothing from later tests. */
export async function sharedPlatform(runtime: "gvisor" | "runc"): Promise<SharedPlatform> {
  const platform = await callRunServices("/platform", { runtime });
  return {
    ...platform,
    logs: () => readFileSync(platform.logFile, "utf8"),
    [Symbol.asyncDispose]: () => killSandboxes(platform),
  };
}

async function killSandboxes({ apiUrl, secrets }: RunningPlatform): Promise<void> {
  const headers = { "X-API-Key": secrets.apiKey };
  const listed = await fetch(`${apiUrl}/v2/sandboxes?state=running,paused&limit=100`, { headers });
  if (!listed.ok) throw new Error(`listing the sandboxes that a test left answered ${listed.status}: ${await listed.text()}`);
  for (const { sandboxID } of (await listed.json()) as { sandboxID: string }[]) {
    const killed = await fetch(`${apiUrl}/sandboxes/${sandboxID}`, { method: "DELETE", headers });
    if (killed.status !== 204 && killed.status !== 404) throw new Error(`killing ${sandboxID} answered ${killed.status}`);
  }
}

export interface SharedDatabase extends AsyncDisposable {
  readonly url: string;
}

/** A database of the run's PostgreSQL server, for this test alone. */
export async function createPostgresDatabase(options: { readonly migrated: boolean }): Promise<SharedDatabase> {
  const { url } = await callRunServices("/postgres/create", options);
  return {
    url,
    async [Symbol.asyncDispose]() {
      await callRunServices("/postgres/drop", { url });
    },
  };
}
