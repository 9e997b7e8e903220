// The settings of the operator's site. `up` and `restart` keep them, because a start without them would cut sandboxes off, or not find their volumes. They are in a file
// that only root can read: the URL of a proxy may contain a password.

import type { DataFolder } from "./data-folder.ts";
import { readJsonFile, writeJsonFile } from "./json-file.ts";

const SITE_VARIABLES = ["SKERRY_CA_FILE", "SKERRY_HTTP_PROXY", "SKERRY_HTTPS_PROXY", "SKERRY_NO_PROXY", "SKERRY_VOLUMES"] as const;

type Environment = Readonly<Record<string, string | undefined>>;

export interface KeptSite {
  /** The environment, with the variables of the last start where it has none. */
  readonly env: Environment;
  /** Keeps the variables for the next start. Call it after they have proved to work. */
  keep(): Promise<void>;
}

/** A variable that is set to nothing is removed from what is kept. */
export async function keptSite(folder: DataFolder, env: Environment): Promise<KeptSite> {
  const last = (await readJsonFile<Record<string, string>>(folder.siteFile)) ?? {};
  const kept: Record<string, string> = {};
  for (const name of SITE_VARIABLES) {
    const value = env[name] ?? last[name];
    if (value) kept[name] = value;
  }
  return {
    env: { ...env, ...kept },
    keep: async () => {
      if (Object.keys(kept).length > 0 || Object.keys(last).length > 0) await writeJsonFile(folder.siteFile, kept, 0o600);
    },
  };
}

/** Removes a variable from what is kept. */
export async function forgetVariable(folder: DataFolder, name: (typeof SITE_VARIABLES)[number]): Promise<void> {
  const { [name]: forgotten, ...others } = (await readJsonFile<Record<string, string>>(folder.siteFile)) ?? {};
  if (forgotten !== undefined) await writeJsonFile(folder.siteFile, others, 0o600);
}
