// A root file system under construction. Its own programs make the changes, in a chroot, so that a symbolic link in an image cannot lead
// a write outside of it.

import { type RunResult, runCommand } from "@skerry/base";
import { toolEnvironment } from "../tool-environment.ts";

export interface Tree {
  /** Runs a program of the tree as root in a chroot. The set-up folder is mounted at `SETUP_PATH`. */
  run(command: string, args: readonly string[], options?: { readonly timeoutMs?: number }): Promise<RunResult>;
}

export const SETUP_PATH = "/mnt";

/** Runs in namespaces of its own, so that no mount and no process remains. */
const ENTER = `set -eu
cd "$1"
setup=$2
shift 2
for name in proc dev mnt; do [ -d $name ] || mkdir $name; done
mount -t proc proc proc
mount -t tmpfs -o mode=755,size=1m tmpfs dev
mkdir dev/pts dev/shm
for name in null zero full random urandom; do
  : >dev/$name
  mount --bind /dev/$name dev/$name
done
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount --bind "$setup" mnt
mount -o remount,bind,ro mnt
exec chroot . "$@"
`;

export function openTree(options: { readonly root: string; readonly setupDir: string; readonly signal: AbortSignal }): Tree {
  const { root, setupDir, signal } = options;
  return {
    run: (command, args, { timeoutMs = 60_000 } = {}) =>
      runCommand(
        "unshare",
        ["--mount", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", root, setupDir, command, ...args],
        {
          env: toolEnvironment({ DEBIAN_FRONTEND: "noninteractive", HOME: "/root", TMPDIR: "/tmp" }),
          timeoutMs,
          maxOutputBytes: 16 * 1024 * 1024,
          signal,
        },
      ),
  };
}
