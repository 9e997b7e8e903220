import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { beforeEach, expect, it } from "vitest";
import { LibcError } from "../../native/libc.ts";
import { EntryReader } from "./entry-reader.ts";
import { Watcher } from "./watcher.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "skerry-watcher-"));
  for (const name of ["open/deep", "closed/deep"]) mkdirSync(join(root, name), { recursive: true });
  return () => rmSync(root, { recursive: true });
});

/** A recursive watcher for which the kernel refuses to watch `closed`. The test runs as root, so no file mode would do. */
function watchWithout(errno: number): { watcher: Watcher; watched: string[] } {
  const watched: string[] = [];
  const source = {
    entries: new EntryReader(),
    memory: { usedBytes: 0 },
    subscribe(path: string) {
      if (path === join(root, "closed")) throw new LibcError("inotify_add_watch", errno);
      return watched.push(path);
    },
    unsubscribe() {},
    scan: (scan: { step(deadline: number): boolean }) => void scan.step(Number.POSITIVE_INFINITY),
  };
  const watcher = new Watcher(source, { root, recursive: true, includeEntry: false, skipped: new Set() });
  return { watcher, watched: watched.sort() };
}

it("skips directories that may not be read, when it watches all that are there", () => {
  const { watcher, watched } = watchWithout(constants.errno.EACCES);
  expect(watched).toEqual([root, join(root, "open"), join(root, "open/deep")]);
  expect(watcher.buffer.failure).toBeUndefined();
});

it("fails when the kernel watches no more", () => {
  const { watcher } = watchWithout(constants.errno.ENOSPC);
  expect(watcher.buffer.failure).toMatchObject({
    code: Code.Internal,
    rawMessage: `error adding path ${join(root, "closed")} to watcher: the limit of watched directories is reached (fs.inotify.max_user_watches)`,
  });
});
