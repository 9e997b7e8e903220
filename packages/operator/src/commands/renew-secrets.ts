import { realpath } from "node:fs/promises";
import { dataDirOf, dataFolder, OperatorError, readSettings, renewSecrets, takeSetupLock } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { requireRoot } from "../require-root.ts";

/** Makes new secrets for a platform that lost its own. Its database and its sandboxes stay. */
export async function renewSecretsCommand(context: OperatorContext, options: { data?: string }): Promise<void> {
  requireRoot("renew-secrets");
  const dataDir = dataDirOf(options.data, context.env);
  const root = await realpath(dataDir).catch(() => undefined);
  if (root === undefined) throw new OperatorError(`there is no platform in ${dataDir}`, { hints: ["To start one, run ./skerry up."] });
  const folder = dataFolder(root);
  await using _lock = await takeSetupLock(folder.lockFile);
  const owner = await context.readOwner({ ...context.env, SKERRY_DATA: root });
  const { setAside } = await renewSecrets(folder, owner);
  const next = (await readSettings(folder)) === undefined ? "up" : "restart";
  const lines = [
    `New secrets are in ${folder.secretsFile}.${setAside === undefined ? "" : ` The old file is now ${setAside}.`}`,
    `To apply them, run ./skerry ${next} --data ${root}.`,
    `Clients need the new key: eval "$(./skerry env --data ${root})". Roles on other hosts need the new internalSecret.`,
    "Existing sandboxes get new tokens when they are paused and resumed.",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}
