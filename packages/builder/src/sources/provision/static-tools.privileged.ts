// Programs for images without a shell: Debian's statically linked bash and busybox, which set-up installs on this machine.

import { createHash } from "node:crypto";
import { chmod, copyFile, lutimes, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError, runCommand } from "@skerry/base";

export interface StaticTools {
  /** Of the programs. */
  readonly digest: string;
  /** Names that busybox has programs for. */
  readonly applets: readonly string[];
  /** Where a tree that `write` made has the programs. */
  readonly dir: string;
  write(tree: string): Promise<void>;
}

const PROGRAMS: Readonly<Record<string, string>> = { bash: "/bin/bash-static", busybox: "/bin/busybox" };
const DIR = "/.skerry-tools";
/** Applets that are for a machine that boots, and those that would pretend to be a shell of the image. */
const LEFT_OUT = new Set(["bash", "busybox", "init", "linuxrc", "halt", "poweroff", "reboot", "sulogin", "getty", "login", "telnetd"]);

let known: Promise<StaticTools> | undefined;

/** Throws PlatformError("build_tools_missing"). */
export function staticTools(): Promise<StaticTools> {
  known ??= readTools().catch((error: unknown) => {
    known = undefined;
    throw error;
  });
  return known;
}

async function readTools(): Promise<StaticTools> {
  try {
    const files = await Promise.all(Object.values(PROGRAMS).map((path) => readFile(path)));
    const { stdout } = await runCommand(PROGRAMS.busybox ?? "", ["--list"]);
    const applets = stdout.split("\n").filter((name) => /^[\w[.+-]+$/.test(name) && !LEFT_OUT.has(name));
    const digest = createHash("sha256");
    for (const file of files) digest.update(createHash("sha256").update(file).digest());
    return { digest: digest.digest("hex"), applets, dir: DIR, write: writeTools };
  } catch (cause) {
    throw new PlatformError("build_tools_missing", "bash-static or busybox-static is not installed on this machine", { cause });
  }
}

async function writeTools(tree: string): Promise<void> {
  const dir = join(tree, DIR);
  await mkdir(dir);
  for (const [name, path] of Object.entries(PROGRAMS)) {
    await copyFile(path, join(dir, name));
    await chmod(join(dir, name), 0o755);
  }
  // The same programs are the same layer.
  for (const path of [...Object.keys(PROGRAMS).map((name) => join(dir, name)), dir, tree]) await lutimes(path, 0, 0);
}
