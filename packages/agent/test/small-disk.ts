import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system at a path that is made for it: of 64 KiB, unless the options of tmpfs say otherwise. */
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

/** Inside a sandbox nobody may mount; what happens when its disk is full is tested on sandboxes whose disk is small. */
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
