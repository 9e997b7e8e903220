// Every secret that this host knows of the platform, so that none of them can be in an archive for a bug report.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { acmeFiles, type DataFolder, localTlsFiles, readJsonFile, type Secrets } from "@skerry/setup/folder";
import { secretsInUrl } from "./scrub.ts";

/** Settings whose whole value is a secret, or may be one. */
export const SECRET_SETTING = /KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH|DATABASE_URL|CONTACT/;
/** What is secret in the secrets file; its ids are not. */
const SECRETS: readonly (keyof Secrets)[] = ["apiKey", "accessToken", "adminToken", "internalSecret", "tokenSeed"];

export async function secretValuesOf(
  folder: DataFolder,
  environments: readonly Readonly<Record<string, string | undefined>>[],
): Promise<string[]> {
  const values: string[] = [];
  for (const file of [folder.secretsFile, folder.secretsBackupFile, ...namedFiles(environments, "SKERRY_SECRETS_FILE")]) {
    const secrets = await readJsonFile<Partial<Secrets>>(file).catch(() => undefined);
    for (const name of SECRETS) if (typeof secrets?.[name] === "string") values.push(secrets[name]);
  }
  for (const file of [folder.encryptionKeysFile, ...namedFiles(environments, "SKERRY_ENCRYPTION_KEYS_FILE")])
    values.push(...(await linesOf(file)));
  const site = (await readJsonFile<Record<string, string>>(folder.siteFile).catch(() => undefined)) ?? {};
  for (const variables of [...environments, site]) {
    for (const [name, value = ""] of Object.entries(variables)) {
      values.push(...secretsInUrl(value));
      if (SECRET_SETTING.test(name) && !name.endsWith("_FILE") && value.length > 0) values.push(...value.split(","), value);
    }
  }
  for (const directory of namedFiles(environments, "SKERRY_REGISTRIES_DIR"))
    values.push(...(await registryPasswords(join(directory, "auth.json"))));
  for (const file of [
    localTlsFiles(folder).key,
    localTlsFiles(folder).caKey,
    acmeFiles(folder).certificate,
    acmeFiles(folder).accountKey,
  ]) {
    values.push(...(await keyLines(file)));
  }
  return values.filter((value) => value !== "");
}

function namedFiles(environments: readonly Readonly<Record<string, string | undefined>>[], name: string): readonly string[] {
  return environments.flatMap((variables) => variables[name] || []);
}

async function linesOf(file: string): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** The lines of private keys in PEM. */
async function keyLines(file: string): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  const keys = text.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END/g) ?? [];
  return keys.flatMap((key) => key.split("\n").filter((line) => !line.startsWith("-----")));
}

/** In the format of `skopeo login`. */
async function registryPasswords(file: string): Promise<readonly string[]> {
  const auth = await readJsonFile<{ auths?: Record<string, { auth?: string; identitytoken?: string }> }>(file).catch(() => undefined);
  return Object.values(auth?.auths ?? {}).flatMap(({ auth: encoded = "", identitytoken = "" }) => {
    const clear = Buffer.from(encoded, "base64").toString("utf8");
    return [encoded, identitytoken, clear, clear.slice(clear.indexOf(":") + 1)];
  });
}

/** The variables with which a process was started; empty for one of another user. */
export async function environmentOf(pid: number | undefined): Promise<Readonly<Record<string, string>>> {
  if (pid === undefined) return {};
  const text = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
  const pairs = text.split("\0").flatMap((entry): [string, string][] => {
    const at = entry.indexOf("=");
    return at > 0 ? [[entry.slice(0, at), entry.slice(at + 1)]] : [];
  });
  return Object.fromEntries(pairs);
}

/** The names of the entries of a folder; none if it cannot be read. */
export async function entriesOf(folder: string): Promise<readonly string[]> {
  return await readdir(folder).catch(() => []);
}
