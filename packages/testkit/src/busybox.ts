import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const APPLETS =
  "sh cat echo ls id ps kill sleep mkdir touch true false env hostname head wc grep ping nc wget mount umount dd su test stat chmod chown".split(
    " ",
  );

/** Writes the smallest root file system: Debian's static busybox and three files, without C library, bash and loader. */
export function writeBusyboxImage(dir: string): void {
  for (const name of ["bin", "etc", "proc", "sys", "dev", "tmp", "root", "home/user"]) mkdirSync(join(dir, name), { recursive: true });
  cpSync("/bin/busybox", join(dir, "bin/busybox"));
  for (const applet of APPLETS) symlinkSync("busybox", join(dir, "bin", applet));
  writeFileSync(join(dir, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n");
  writeFileSync(join(dir, "etc/group"), "root:x:0:\nuser:x:1000:\n");
}
