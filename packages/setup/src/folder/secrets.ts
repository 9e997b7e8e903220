// The clear values that were made at first start. The database has hashes only, so what is lost here is lost for good: the file is
// written durably, and a copy lies beside it. Nothing is ever put back by itself: a file that can't be read may be one that somebody
// edited to replace a key, and the copy would bring the former key back.

import { randomBytes, randomUUID } from "node:crypto";
import { chmod, copyFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { asError } from "@skerry/base";
import { OperatorError } from "../operator-error.ts";
import type { DataFolder } from "./data-folder.ts";
import { writeJsonFile } from "./json-file.ts";

/** This file is for root alone. */
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

const NAMES: readonly (keyof Secrets)[] = ["apiKey", "accessToken", "adminToken", "teamId", "userId", "internalSecret", "tokenSeed"];

/** Who owns what a platform's database has. */
export type PlatformOwner = Pick<Secrets, "teamId" | "userId">;

export interface EnsuredSecrets {
  readonly secrets: Secrets;
  readonly created: boolean;
  /** Why there is no copy that is up to date. */
  readonly copyProblem: string | undefined;
}

/** The secrets of this data folder, made where there have never been any. Throws for those that are damaged or gone, with the way on. */
export async function ensureSecrets(folder: DataFolder): Promise<EnsuredSecrets> {
  const found = await look(folder.secretsFile);
  if (found.kind === "good") {
    await chmod(folder.secretsFile, 0o600);
    // A platform starts without one, as on a full disk.
    const copyProblem = await keepCopy(folder, found.secrets)
      .then(() => undefined)
      .catch((error: unknown) => asError(error).message);
    return { secrets: found.secrets, created: false, copyProblem };
  }
  if (found.kind === "damaged" || (await wasSetUp(folder))) throw await lost(folder, found);
  return { secrets: await createSecrets(folder, newOwner()), created: true, copyProblem: undefined };
}

/** Other secrets for a platform whose own are lost; what its database has stays with its owner. */
async function createSecrets(folder: DataFolder, { teamId, userId }: PlatformOwner): Promise<Secrets> {
  const hex = (bytes: number) => randomBytes(bytes).toString("hex");
  const secrets: Secrets = {
    apiKey: `e2b_${hex(20)}`,
    accessToken: `sk_e2b_${hex(20)}`,
    adminToken: `skerry_admin_${hex(20)}`,
    teamId,
    userId,
    internalSecret: hex(32),
    tokenSeed: hex(32),
  };
  await writeJsonFile(folder.secretsFile, secrets, 0o600);
  await keepCopy(folder, secrets);
  return secrets;
}

/**
 * New secrets where those of before are lost, or belong to another database than that of `owner`. Throws where nothing is wrong with them.
 * The former file is kept beside the new one.
 */
export async function renewSecrets(folder: DataFolder, owner: PlatformOwner | undefined): Promise<{ setAside: string | undefined }> {
  const found = await look(folder.secretsFile);
  if (found.kind === "good" && (owner === undefined || isOwner(found.secrets, owner))) {
    throw new OperatorError(`nothing is wrong with ${folder.secretsFile}, and it belongs to this database`, {
      mend: ["To replace a key or a token, change it in that file, then: ./skerry restart"],
    });
  }
  const copy = await look(folder.secretsBackupFile);
  if (found.kind !== "good" && copy.kind === "good" && (owner === undefined || isOwner(copy.secrets, owner)))
    throw await lost(folder, found);
  const setAside = found.kind === "missing" ? undefined : `${folder.secretsFile}.${Date.now()}`;
  if (setAside !== undefined) {
    await copyFile(folder.secretsFile, setAside);
    await chmod(setAside, 0o600);
  }
  await createSecrets(folder, owner ?? newOwner());
  return { setAside };
}

const isOwner = ({ teamId, userId }: Secrets, owner: PlatformOwner) => teamId === owner.teamId && userId === owner.userId;
const newOwner = (): PlatformOwner => ({ teamId: randomUUID(), userId: randomUUID() });

/** The secrets of a platform that was set up before. */
export async function readSecrets(folder: DataFolder): Promise<Secrets> {
  let found: Found;
  try {
    found = await look(folder.secretsFile);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EACCES") throw cause;
    throw new OperatorError(`${folder.secretsFile} is for root alone`, { exit: "notRoot", mend: ["Run this as root (sudo)."], cause });
  }
  if (found.kind === "good") return found.secrets;
  if (found.kind === "damaged" || (await wasSetUp(folder))) throw await lost(folder, found);
  throw new OperatorError(`nothing has been set up in ${folder.root}`, { exit: "notRunning", mend: ["Start the platform: ./skerry up"] });
}

type Found =
  | { readonly kind: "good"; readonly secrets: Secrets }
  | { readonly kind: "missing" }
  | { readonly kind: "damaged"; readonly why: string };

async function look(path: string): Promise<Found> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { kind: "missing" };
    throw error;
  }
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return { kind: "damaged", why: text.trim() === "" ? "it is empty" : "it is not JSON" };
  }
  const values = (fields ?? {}) as Partial<Record<keyof Secrets, unknown>>;
  const missing = NAMES.filter((name) => typeof values[name] !== "string" || values[name] === "");
  if (missing.length > 0) return { kind: "damaged", why: `it has no ${missing.join(", ")}` };
  return { kind: "good", secrets: values as Secrets };
}

/** Also after somebody has replaced a key in the file. */
async function keepCopy(folder: DataFolder, secrets: Secrets): Promise<void> {
  const copy = await look(folder.secretsBackupFile);
  if (copy.kind === "good" && NAMES.every((name) => copy.secrets[name] === secrets[name])) return;
  await writeJsonFile(folder.secretsBackupFile, secrets, 0o600);
}

/** A platform that was started has settings, one that served has a database; a copy of secrets says that there were some. */
async function wasSetUp(folder: DataFolder): Promise<boolean> {
  const signs = [folder.settingsFile, folder.secretsBackupFile, join(folder.root, "skerry.db")];
  const found = await Promise.all(signs.map((path) => stat(path).catch(() => undefined)));
  return found.some((one) => one !== undefined);
}

async function lost(folder: DataFolder, found: Exclude<Found, { kind: "good" }>): Promise<OperatorError> {
  const { secretsFile, secretsBackupFile, root } = folder;
  const what = found.kind === "missing" ? `${secretsFile} is missing` : `${secretsFile} is damaged: ${found.why}`;
  const copy = await look(secretsBackupFile);
  if (copy.kind === "good") {
    return new OperatorError(what, {
      mend: [
        `Its copy of ${(await stat(secretsBackupFile)).mtime.toISOString()} is good. To put that back: cp -p ${secretsBackupFile} ${secretsFile}`,
        "Then run this again. A key that was replaced in the file since then has to be replaced once more.",
      ],
    });
  }
  return new OperatorError(`${what}, and there is no good copy of it (${secretsBackupFile})`, {
    mend: [
      `If you have a copy of your own, put it there. Else make new secrets: ./skerry renew-secrets --data ${root}`,
      "Sandboxes, snapshots, templates and other keys stay. Lost are: the API key, the access token and the admin token of this file,",
      "and the tokens of sandboxes that exist, which get new ones when they are paused and resumed.",
    ],
  });
}
