// Writes the files that every sandbox needs and no template can contain: host names, resolvers, and a mark in /tmp. They are written to the
// new, empty `upper` directory and never through the merged tree. So the host never follows a link of a hostile template.

import { chmodSync, chownSync, lstatSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What is written here, by its path below `upper`. */
export const ROOT_DIRECTORIES = [
  { name: "etc", mode: 0o755 },
  { name: "tmp", mode: 0o1777 },
] as const;
export const ROOT_FILES: readonly string[] = ["etc/hostname", "etc/hosts", "etc/resolv.conf", "tmp/.skerry"];

export function writeRootFiles(options: { upper: string; hostname: string; resolvers: readonly string[]; ownerId: number }): void {
  const { upper, hostname, resolvers, ownerId } = options;
  const own = (path: string, mode: number) => {
    chownSync(path, ownerId, ownerId);
    chmodSync(path, mode);
  };
  const dir = (name: string, mode: number) => {
    mkdirSync(join(upper, name));
    own(join(upper, name), mode);
  };
  const file = (name: string, text: string) => {
    writeFileSync(join(upper, name), text);
    own(join(upper, name), 0o644);
  };
  own(upper, 0o755);
  for (const { name, mode } of ROOT_DIRECTORIES) dir(name, mode);
  file("etc/hostname", `${hostname}\n`);
  file("etc/hosts", `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 ${hostname}\n`);
  file("etc/resolv.conf", resolvers.map((address) => `nameserver ${address}\n`).join(""));
  file("tmp/.skerry", "");
}

/**
 * Puts a mark into /tmp of an existing area. gVisor mounts a memory file system on an empty /tmp, whose files would be in no layer. The agent
 * removes the mark. Nothing of the sandbox runs now, but a guest may have placed links.
 */
export function markTmp(upper: string, ownerId: number): void {
  const tmp = join(upper, "tmp");
  const about = lstatSync(tmp, { throwIfNoEntry: false });
  if (about === undefined) {
    mkdirSync(tmp);
    chownSync(tmp, ownerId, ownerId);
    chmodSync(tmp, 0o1777);
  } else if (!about.isDirectory()) return;
  const mark = join(tmp, ".skerry");
  if (lstatSync(mark, { throwIfNoEntry: false }) !== undefined) return;
  // "wx" only creates a new file, and follows no link.
  writeFileSync(mark, "", { flag: "wx" });
}
