// Files that every sandbox needs and no image has right: names, resolvers, and a mark in /tmp. They go into the new and
// still empty `upper`, never through the merged tree, so no link of a hostile image is ever followed on the host.

import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function writeRootFiles(options: { upper: string; sandboxId: string; resolvers: readonly string[]; ownerId: number }): void {
  const { upper, sandboxId, resolvers, ownerId } = options;
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
  file("etc/hostname", `${sandboxId}\n`);
  file("etc/hosts", `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 ${sandboxId}\n`);
  file("etc/resolv.conf", resolvers.map((address) => `nameserver ${address}\n`).join(""));
  dir("tmp", 0o1777);
  // gVisor covers an empty /tmp with a memory file system, and its files would be in no layer. The agent removes the mark.
  file("tmp/.skerry", "");
}
