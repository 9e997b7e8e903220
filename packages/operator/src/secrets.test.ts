import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDataFolder, type DataFolder } from "./data-folder.ts";
import { ensureSecrets, readSecrets } from "./secrets.ts";

let dir: string;
let folder: DataFolder;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "secrets-"));
  folder = await createDataFolder(join(dir, "data"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("they have the forms that clients expect, and only the owner reads them", async () => {
  const { secrets, created } = await ensureSecrets(folder);
  expect(created).toBe(true);
  expect(secrets.apiKey).toMatch(/^e2b_[0-9a-f]{40}$/);
  expect(secrets.accessToken).toMatch(/^sk_e2b_[0-9a-f]{40}$/);
  expect(new Set(Object.values(secrets)).size).toBe(Object.keys(secrets).length);
  expect(statSync(folder.secretsFile).mode & 0o777).toBe(0o600);
});

test("they never change once they are there", async () => {
  const { secrets } = await ensureSecrets(folder);
  expect(await ensureSecrets(folder)).toEqual({ secrets, created: false });
  expect(await readSecrets(folder)).toEqual(secrets);
  expect(readFileSync(folder.secretsFile, "utf8")).toContain(secrets.tokenSeed);
});

test("without a set-up it says what to do", async () => {
  await expect(readSecrets(folder)).rejects.toMatchObject({ exit: "notRunning", mend: [expect.stringContaining("./skerry up")] });
});
