// The program behind ./skerry: connects the operator's commands to the platform.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runOperator } from "@skerry/operator";

const repoRoot = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8")) as { version: string };

process.exit(
  await runOperator(
    {
      version,
      repoRoot,
      mainScript: import.meta.filename,
      env: process.env,
      serve: async (env) => (await import("./serve.ts")).serve(env, { version }),
      readOwner: async (env) => (await import("./owner.ts")).readOwner(env),
      copyDatabase: async (env, file) => (await import("./copy-database.ts")).copyPlatformDatabase(env, file),
      restoreDatabase: async (env, file) => (await import("./copy-database.ts")).restorePlatformDatabase(env, file),
      cleanup: async (dataDir) => ({ ...(await (await import("./cleanup.ts")).cleanup(dataDir)) }),
    },
    process.argv.slice(2),
  ),
);
