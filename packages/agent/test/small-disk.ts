import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Mounts a tmpfs at a new path: of 64 KiB, unless the options say otherwise. */
export function mountSmallDisk(path: string, options = "size=64k"): Disposable {
  mkdirSync(path);
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path], { stdio: "ignore" });
  return {
    [Symbol.dispose]() {
      execFileSync("umount", ["--lazy", path]);
      rmSync(path, { recursive: true });
    },
  };
}

/** Whether this process may mount. It may not inside a sandbox, where other tests use sandboxes with a small disk. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "skerry-mount-"));
  try {
    mountSmallDisk(join(folder, "disk"))[Symbol.dispose]();
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
