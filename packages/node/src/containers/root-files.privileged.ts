// Files that every sandbox needs and no image has right: names, resolvers, and a mark in /tmp. They go into the new and
// still empty `upper`, never through the merged tree, so no link of a hostile image is ever followed on the host.

import { chmodSync, chownSync, lstatSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

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
  dir("etc", 0o755);
  file("etc/hostname", `${hostname}\n`);
  file("etc/hosts", `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 ${hostname}\n`);
  file("etc/resolv.conf", resolvers.map((address) => `nameserver ${address}\n`).join(""));
  dir("tmp", 0o1777);
  file("tmp/.skerry", "");
}

/**
 * gVisor covers an empty /tmp with a memory file system, and its files would be in no layer: so a mark lies there at each boot,
 * which the agent removes. Here for a root that was used before; nothing of it runs now, but its links are a guest's.
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
  // "wx" makes a new file or none: it follows no link.
  writeFileSync(mark, "", { flag: "wx" });
}
