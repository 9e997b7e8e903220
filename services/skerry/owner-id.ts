import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { asError, type Logger } from "@skerry/base";

const FORM = /^[0-9a-f]{32}$/;

/**
 * The name of an api process in the records of operations under way. It stays the same after a restart, so that the process finds its
 * interrupted operations, and differs between processes, also in containers with the same host name. If it cannot be stored, each start
 * has a new name, and interrupted operations are found by their age, which takes longer.
 */
export function ownerIdOf(options: { dataDir: string; port: number; logger: Logger }): string {
  const file = join(options.dataDir, "api-id");
  return `${hostname()}-${read(file) ?? make(file, options.logger)}:${options.port}`;
}

/** The stored id. Undefined if there is none, or this process cannot read it. */
function read(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return FORM.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

function make(file: string, logger: Logger): string {
  const id = randomBytes(16).toString("hex");
  const draft = `${file}.${id}`;
  try {
    writeFileSync(draft, `${id}\n`, { mode: 0o600 });
    renameSync(draft, file);
  } catch (error) {
    logger.warn({ err: asError(error), file }, "could not store the id of this api process: each start has a new one");
  }
  return id;
}
