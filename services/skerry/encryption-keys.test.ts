import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret } from "@skerry/base";
import { afterEach, beforeEach, expect, it } from "vitest";
import { encryptionKeysOf } from "./encryption-keys.ts";

const [ONE, TWO] = ["11".repeat(32), "22".repeat(32)];
let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "skerry-vault-"));
});
afterEach(async () => await rm(dataDir, { recursive: true, force: true }));

async function read(config: { encryptionKeys?: Secret; encryptionKeysFile?: string; dataDir?: string }): Promise<string[]> {
  const keys = await encryptionKeysOf({ dataDir, encryptionKeys: undefined, encryptionKeysFile: undefined, ...config });
  return keys.map((key) => key.reveal().toString("hex"));
}

it("takes the keys of the setting, in their order", async () => {
  expect(await read({ encryptionKeys: new Secret(`${TWO},${ONE}`) })).toEqual([TWO, ONE]);
});

it("takes the keys of a file", async () => {
  const encryptionKeysFile = join(dataDir, "mine");
  await writeFile(encryptionKeysFile, `# new\n${ONE}\n# old\n${TWO}\n`);
  expect(await read({ encryptionKeysFile })).toEqual([ONE, TWO]);
});

it("makes a key in the data folder once", async () => {
  const made = await read({});
  expect(made).toHaveLength(1);
  expect(await read({})).toEqual(made);
  expect(Buffer.from(await readFile(join(dataDir, "encryption-keys"), "utf8"), "base64").toString("hex")).toBe(made[0]);
});

it("refuses files that can't be read or made, or are damaged, and names them", async () => {
  const missing = join(dataDir, "nowhere");
  for (const config of [{ encryptionKeysFile: missing }, { dataDir: missing }]) {
    await expect(read(config)).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining(missing) });
  }
  await writeFile(join(dataDir, "encryption-keys"), "");
  await expect(read({})).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining("has no key") });
});
