import { randomBytes, randomUUID } from "node:crypto";
import { chmod } from "node:fs/promises";
import type { DataFolder } from "./data-folder.ts";
import { readJsonFile, writeJsonFile } from "./json-file.ts";
import { OperatorError } from "./operator-error.ts";

/** The clear values that were made at first start. The database knows hashes only; this file is for root alone. */
export interface Secrets {
  readonly apiKey: string;
  readonly accessToken: string;
  readonly adminToken: string;
  readonly teamId: string;
  readonly userId: string;
  /** Shared by the roles of one platform. */
  readonly internalSecret: string;
  /** What sandbox tokens are derived from. */
  readonly tokenSeed: string;
}

/** The secrets of this data folder, made when there are none. Existing ones never change. */
export async function ensureSecrets(folder: DataFolder): Promise<{ secrets: Secrets; created: boolean }> {
  const existing = await readJsonFile<Secrets>(folder.secretsFile);
  if (existing) {
    await chmod(folder.secretsFile, 0o600);
    return { secrets: existing, created: false };
  }
  const hex = (bytes: number) => randomBytes(bytes).toString("hex");
  const secrets: Secrets = {
    apiKey: `e2b_${hex(20)}`,
    accessToken: `sk_e2b_${hex(20)}`,
    adminToken: `skerry_admin_${hex(20)}`,
    teamId: randomUUID(),
    userId: randomUUID(),
    internalSecret: hex(32),
    tokenSeed: hex(32),
  };
  await writeJsonFile(folder.secretsFile, secrets, 0o600);
  return { secrets, created: true };
}

/** The secrets of a platform that was set up before. */
export async function readSecrets(folder: DataFolder): Promise<Secrets> {
  let secrets: Secrets | undefined;
  try {
    secrets = await readJsonFile<Secrets>(folder.secretsFile);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EACCES") throw cause;
    throw new OperatorError(`${folder.secretsFile} is for root alone`, { exit: "notRoot", mend: ["Run this as root (sudo)."], cause });
  }
  if (!secrets) {
    throw new OperatorError(`nothing has been set up in ${folder.root}`, { exit: "notRunning", mend: ["Start the platform: ./skerry up"] });
  }
  return secrets;
}
