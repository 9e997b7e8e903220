import { randomBytes } from "node:crypto";
import { chmod, link, open, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "./json-file.ts";

/**
 * The text of the file, which is made with `make` if it does not exist. Only its owner can read it. Of two processes that make it at the
 * same time, both return what the first one wrote. It is on the disk before anything is encrypted with it.
 */
export async function ensureKeyFile(path: string, make: () => string): Promise<string> {
  const found = await readIfThere(path);
  if (found !== undefined) {
    await chmod(path, 0o600);
    return found;
  }
  const staged = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    const file = await open(staged, "wx", 0o600);
    try {
      await file.writeFile(`${make()}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(staged, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(staged, { force: true });
  }
  await syncFolder(dirname(path));
  return await readFile(path, "utf8");
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
