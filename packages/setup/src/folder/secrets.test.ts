import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { afterEach, beforeEach, expect, test } from "vitest";
import { OperatorError } from "../operator-error.ts";
import { createDataFolder, type DataFolder } from "./data-folder.ts";
import { ensureSecrets, readSecrets, renewSecrets, type Secrets } from "./secrets.ts";

let dir: string;
let folder: DataFolder;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "secrets-"));
  folder = await createDataFolder(join(dir, "data"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("secrets have the formats that clients expect, and only root can read the file", async () => {
  const { secrets, created } = await ensureSecrets(folder);
  expect(created).toBe(true);
  expect(secrets.apiKey).toMatch(/^e2b_[0-9a-f]{40}$/);
  expect(secrets.accessToken).toMatch(/^sk_e2b_[0-9a-f]{40}$/);
  expect(new Set(Object.values(secrets)).size).toBe(Object.keys(secrets).length);
  expect(statSync(folder.secretsFile).mode & 0o777).toBe(0o600);
});

test("existing secrets never change", async () => {
  const { secrets } = await ensureSecrets(folder);
  expect(await ensureSecrets(folder)).toEqual({ secrets, created: false });
  expect(await readSecrets(folder)).toEqual(secrets);
  expect(readFileSync(folder.secretsFile, "utf8")).toContain(secrets.tokenSeed);
});

test("without a set-up, the error says what to do", async () => {
  await expect(readSecrets(folder)).rejects.toMatchObject({ exit: "notRunning", hints: [expect.stringContaining("./skerry up")] });
});

const RUINS: Record<string, (file: string) => void> = {
  gone: (file) => rmSync(file),
  empty: (file) => writeFileSync(file, ""),
  torn: (file) => writeFileSync(file, readFileSync(file).subarray(0, 100)),
  "without a field": (file) => writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), tokenSeed: "" })),
  "null bytes": (file) => writeFileSync(file, Buffer.alloc(400)),
};

const failureOf = async (work: Promise<unknown>): Promise<OperatorError> => {
  const error = await work.then(() => undefined).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(OperatorError);
  return error as OperatorError;
};
/** The command of a line such as `To restore it, run: cp …`. */
const commandIn = ({ hints }: OperatorError, name: string) => hints.join("\n").match(new RegExp(`: (${name} .*)`))?.[1] ?? "";

test.each(Object.entries(RUINS))("a file that is %s: the command in the message restores the copy", async (_name, ruin) => {
  const { secrets } = await ensureSecrets(folder);
  expect(statSync(folder.secretsBackupFile).mode & 0o777).toBe(0o600);
  ruin(folder.secretsFile);
  const command = commandIn(await failureOf(ensureSecrets(folder)), "cp");
  expect(commandIn(await failureOf(readSecrets(folder)), "cp")).toBe(command);
  // Nor are others made where the copy is good.
  expect(commandIn(await failureOf(renewSecrets(folder, undefined)), "cp")).toBe(command);
  await runCommand("sh", ["-c", command]);
  expect(await ensureSecrets(folder)).toEqual({ secrets, created: false });
  expect(statSync(folder.secretsFile).mode & 0o777).toBe(0o600);
});

test("the copy is updated when a key is replaced in the file, and made if it is missing", async () => {
  const { secrets } = await ensureSecrets(folder);
  const copy = () => JSON.parse(readFileSync(folder.secretsBackupFile, "utf8")) as Secrets;
  const replaced = { ...secrets, apiKey: `e2b_${"0".repeat(40)}` };
  writeFileSync(folder.secretsFile, JSON.stringify(replaced));
  await ensureSecrets(folder);
  expect(copy()).toEqual(replaced);
  rmSync(folder.secretsBackupFile);
  await ensureSecrets(folder);
  expect(copy()).toEqual(replaced);
});

test.each(Object.entries(RUINS))(
  "file and copy %s: new ones are made on demand, for the same owner, and the former file is kept",
  async (name, ruin) => {
    const { secrets } = await ensureSecrets(folder);
    writeFileSync(folder.settingsFile, "{}");
    ruin(folder.secretsFile);
    ruin(folder.secretsBackupFile);
    const former = name === "gone" ? undefined : readFileSync(folder.secretsFile);
    const { hints } = await failureOf(ensureSecrets(folder));
    expect(hints.join("\n")).toMatch(/\.\/skerry renew-secrets --data .*\n.*replace the API key/);
    const { setAside } = await renewSecrets(folder, secrets);
    const renewed = await readSecrets(folder);
    expect(renewed).toMatchObject({ teamId: secrets.teamId, userId: secrets.userId });
    expect(new Set([...Object.values(renewed), ...Object.values(secrets)]).size).toBe(12);
    expect(await ensureSecrets(folder)).toEqual({ secrets: renewed, created: false });
    expect(setAside === undefined ? undefined : readFileSync(setAside)).toEqual(former);
    if (setAside !== undefined) expect(statSync(setAside).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder.root).filter((file) => file.startsWith("secrets.json."))).toHaveLength(setAside === undefined ? 0 : 1);
  },
);

test("valid secrets of the same database are not replaced; those of another database are", async () => {
  const { secrets } = await ensureSecrets(folder);
  for (const owner of [undefined, secrets])
    expect((await failureOf(renewSecrets(folder, owner))).message).toContain("is valid and belongs to this database");
  const owner = { teamId: "another team", userId: "another user" };
  await renewSecrets(folder, owner);
  expect(await readSecrets(folder)).toMatchObject(owner);
});
