import { clientVariables, dataDirOf, dataFolder, OperatorError, readSecrets, readSettings, shellQuote } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";

/** Prints `export` statements that connect an E2B client to this platform. */
export async function env(context: OperatorContext, options: { data?: string; all?: boolean; json?: boolean }): Promise<void> {
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const secrets = await readSecrets(folder);
  const settings = await readSettings(folder);
  if (!settings) {
    throw new OperatorError(`there is no platform in ${folder.root}`, { exit: "notRunning", hints: ["To start one, run ./skerry up."] });
  }
  const variables = clientVariables(secrets, settings, options.all ?? false);
  const text = options.json
    ? JSON.stringify(variables, null, 2)
    : Object.entries(variables)
        .map(([name, value]) => `export ${name}=${shellQuote(value)}`)
        .join("\n");
  process.stdout.write(`${text}\n`);
}
