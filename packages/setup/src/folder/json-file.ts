import { randomBytes } from "node:crypto";
import { chmod, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { OperatorError } from "../operator-error.ts";

/** Returns the parsed file, or undefined if it does not exist. Throws OperatorError if it is not JSON. */
export async function readJsonFile<T>(path: string): Promise<T | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new OperatorError(`${path} is damaged: it is not JSON`, { hints: [`Restore it from a backup or delete it: rm ${path}`], cause });
  }
}

export async function writeJsonFile(path: string, value: unknown, mode = 0o644): Promise<void> {
  await writeTextFile(path, `${JSON.stringify(value, null, 2)}\n`, mode);
}

/**
 * Replaces the file atomically and durably: readers see the old or the new content, also after a crash. Unchanged content is not written
 * again, so that a platform can be started on a full disk.
 */
export async function writeTextFile(path: string, text: string, mode: number): Promise<void> {
  if ((await readFile(path, "utf8").catch(() => undefined)) === text) return await chmod(path, mode);
  const staged = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    const file = await open(staged, "wx", mode);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(staged, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

/** Makes the rename durable. Otherwise a loss of power could bring the old file back. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
