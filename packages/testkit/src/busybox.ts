import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const APPLETS =
  "sh cat echo ls id ps kill sleep mkdir touch true false env hostname head wc grep ping nc wget mount umount dd su test stat chmod chown".split(
    " ",
  );

/** The smallest image: Debian's static busybox and three files. No C library, no bash, no loader. */
export function writeBusyboxImage(dir: string): void {
  for (const name of ["bin", "etc", "proc", "sys", "dev", "tmp", "root", "home/user"]) mkdirSync(join(dir, name), { recursive: true });
  cpSync("/bin/busybox", join(dir, "bin/busybox"));
  for (const applet of APPLETS) symlinkSync("busybox", join(dir, "bin", applet));
  writeFileSync(join(dir, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n");
  writeFileSync(join(dir, "etc/group"), "root:x:0:\nuser:x:1000:\n");
}
