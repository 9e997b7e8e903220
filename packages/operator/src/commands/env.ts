import {
  clientVariables,
  dataDirOf,
  dataFolder,
  localTlsFiles,
  OperatorError,
  readSecrets,
  readSettings,
  shellQuote,
  URL_VARIABLES,
} from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";

/** Prints `export` statements that connect an E2B client to this platform. */
export async function env(context: OperatorContext, options: { data?: string; all?: boolean; json?: boolean }): Promise<void> {
  const folder = dataFolder(dataDirOf(options.data, context.env));
  const secrets = await readSecrets(folder);
  const settings = await readSettings(folder);
  if (!settings) {
    throw new OperatorError(`there is no platform in ${folder.root}`, { exit: "notRunning", hints: ["To start one, run ./skerry up."] });
  }
  const variables = clientVariables({ secrets, settings, tlsFiles: localTlsFiles(folder), all: options.all ?? false });
  const text = options.json ? JSON.stringify(variables, null, 2) : statements(variables).join("\n");
  process.stdout.write(`${text}\n`);
}

function statements(variables: Readonly<Record<string, string>>): string[] {
  // A shell may have the addresses of an earlier start without TLS, which clients would prefer to the domain.
  const stale = URL_VARIABLES.filter((name) => !(name in variables));
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuote(value)}`);
  return stale.length === 0 ? exports : [`unset ${stale.join(" ")}`, ...exports];
}
