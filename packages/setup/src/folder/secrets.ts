// Keys and tokens in clear, made at the first start. The database has only their hashes, so a lost value cannot be recovered. The file
// is therefore written durably, with a copy beside it. The copy is never restored automatically: an unreadable file may be one that the
// operator edited to replace a key, and the copy would bring the old key back.

import { randomBytes, randomUUID } from "node:crypto";
import { chmod, copyFile, readFile, stat } from "node:fs/promises";
import { asError } from "@skerry/base";
import { OperatorError } from "../operator-error.ts";
import type { DataFolder } from "./data-folder.ts";
import { writeJsonFile } from "./json-file.ts";

/** secrets.json, readable by root alone. */
export interface Secrets {
  readonly apiKey: string;
  readonly accessToken: string;
  readonly adminToken: string;
  readonly teamId: string;
  readonly userId: string;
  /** Shared by the roles of one platform. */
  readonly internalSecret: string;
  /** Sandbox tokens are derived from this seed. */
  readonly tokenSeed: string;
}

const NAMES: readonly (keyof Secrets)[] = ["apiKey", "accessToken", "adminToken", "teamId", "userId", "internalSecret", "tokenSeed"];

/** The team and user that own the contents of a platform's database. */
export type PlatformOwner = Pick<Secrets, "teamId" | "userId">;

export interface EnsuredSecrets {
  readonly secrets: Secrets;
  readonly created: boolean;
  /** Why the copy could not be brought up to date. */
  readonly copyProblem: string | undefined;
}

/** The secrets of this data folder, made at the first start. Throws OperatorError if they are damaged or lost. */
export async function ensureSecrets(folder: DataFolder): Promise<EnsuredSecrets> {
  const found = await look(folder.secretsFile);
  if (found.kind === "good") {
    await chmod(folder.secretsFile, 0o600);
    // A platform starts without a copy, for example on a full disk.
    const copyProblem = await keepCopy(folder, found.secrets)
      .then(() => undefined)
      .catch((error: unknown) => asError(error).message);
    return { secrets: found.secrets, created: false, copyProblem };
  }
  if (found.kind === "damaged" || (await wasSetUp(folder))) throw await lost(folder, found);
  return { secrets: await createSecrets(folder, newOwner()), created: true, copyProblem: undefined };
}

/** Writes new secrets. The contents of the database stay with `owner`. */
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
 * Makes new secrets if the present ones are lost, or do not belong to `owner`'s database. Keeps the old file beside the new one. Throws
 * OperatorError if the present secrets or their copy are valid.
 */
export async function renewSecrets(folder: DataFolder, owner: PlatformOwner | undefined): Promise<{ setAside: string | undefined }> {
  const found = await look(folder.secretsFile);
  if (found.kind === "good" && (owner === undefined || isOwner(found.secrets, owner))) {
    throw new OperatorError(`${folder.secretsFile} is valid and belongs to this database`, {
      hints: ["To replace a key or a token, change it in that file and run ./skerry restart."],
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

/** The secrets of a platform that is set up. Throws OperatorError otherwise. */
export async function readSecrets(folder: DataFolder): Promise<Secrets> {
  let found: Found;
  try {
    found = await look(folder.secretsFile);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EACCES") throw cause;
    throw new OperatorError(`only root can read ${folder.secretsFile}`, {
      exit: "notRoot",
      hints: ["Run this command as root (sudo)."],
      cause,
    });
  }
  if (found.kind === "good") return found.secrets;
  if (found.kind === "damaged" || (await wasSetUp(folder))) throw await lost(folder, found);
  throw new OperatorError(`there is no platform in ${folder.root}`, { exit: "notRunning", hints: ["To start one, run ./skerry up."] });
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

/** Writes the copy if it differs, for example because the operator replaced a key in the file. */
async function keepCopy(folder: DataFolder, secrets: Secrets): Promise<void> {
  const copy = await look(folder.secretsBackupFile);
  if (copy.kind === "good" && NAMES.every((name) => copy.secrets[name] === secrets[name])) return;
  await writeJsonFile(folder.secretsBackupFile, secrets, 0o600);
}

/** Whether there has been a platform: it leaves settings, a copy of its secrets, or a database. */
async function wasSetUp(folder: DataFolder): Promise<boolean> {
  const signs = [folder.settingsFile, folder.secretsBackupFile, folder.databaseFile];
  const found = await Promise.all(signs.map((path) => stat(path).catch(() => undefined)));
  return found.some((one) => one !== undefined);
}

async function lost(folder: DataFolder, found: Exclude<Found, { kind: "good" }>): Promise<OperatorError> {
  const { secretsFile, secretsBackupFile, root } = folder;
  const what = found.kind === "missing" ? `${secretsFile} is missing` : `${secretsFile} is damaged: ${found.why}`;
  const copy = await look(secretsBackupFile);
  if (copy.kind === "good") {
    return new OperatorError(what, {
      hints: [
        `Its copy of ${(await stat(secretsBackupFile)).mtime.toISOString()} is valid. To restore it, run: cp -p ${secretsBackupFile} ${secretsFile}`,
        "Then run this command again. Keys that were replaced in the file since then must be replaced again.",
      ],
    });
  }
  return new OperatorError(`${what}, and it has no valid copy (${secretsBackupFile})`, {
    hints: [
      `Restore it from a backup of your own, or make new secrets: ./skerry renew-secrets --data ${root}`,
      "New secrets replace the API key, the access token and the admin token. Sandboxes, snapshots, templates and other keys stay.",
      "Existing sandboxes get new tokens when they are paused and resumed.",
    ],
  });
}
