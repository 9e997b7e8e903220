// The shared services of a test run, for test files.

import { readFileSync } from "node:fs";
import type { RunningPlatform } from "../platform.ts";
import { callRunServices } from "./call.ts";

/**
 * A platform that other test files use at the same time. Each test file has its own team, so lists show the sandboxes of this file only.
 * A test that kills, restarts or configures a platform, or counts its resources on the host, needs its own from `startPlatform`.
 */
export interface SharedPlatform extends RunningPlatform, AsyncDisposable {
  /** The log of the platform so far, which includes the sandboxes of other test files. */
  logs(): string;
}

/** The shared platform with this runtime. Disposing it kills the sandboxes of the team, so that they use no resources in later tests. */
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
  if (!listed.ok) throw new Error(`listing the sandboxes of a finished test failed with ${listed.status}: ${await listed.text()}`);
  for (const { sandboxID } of (await listed.json()) as { sandboxID: string }[]) {
    const killed = await fetch(`${apiUrl}/sandboxes/${sandboxID}`, { method: "DELETE", headers });
    if (killed.status !== 204 && killed.status !== 404) throw new Error(`killing ${sandboxID} failed with ${killed.status}`);
  }
}

export interface SharedDatabase extends AsyncDisposable {
  readonly url: string;
}

/** Creates a database for one test on the shared PostgreSQL server. */
export async function createPostgresDatabase(options: { readonly migrated: boolean }): Promise<SharedDatabase> {
  const { url } = await callRunServices("/postgres/create", options);
  return {
    url,
    async [Symbol.asyncDispose]() {
      await callRunServices("/postgres/drop", { url });
    },
  };
}
