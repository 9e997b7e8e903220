import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { asError, type Logger } from "@skerry/base";

const FORM = /^[0-9a-f]{32}$/;

/**
 * Names a control process in the entries that it works on: the same after a restart, so that it finds what it left, and
 * another for each of several, also in containers that all have one host name. Where nothing can be kept it is new at each
 * start; what was left is then found by its age, which takes longer.
 */
export function ownerIdOf(options: { dataDir: string; port: number; logger: Logger }): string {
  const file = join(options.dataDir, "api-id");
  return `${hostname()}-${read(file) ?? make(file, options.logger)}:${options.port}`;
}

/** Undefined when there is none, or none that this process may read. */
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
    logger.warn({ err: asError(error), file }, "the data folder can't be written to: this process has a new name after each start");
  }
  return id;
}
