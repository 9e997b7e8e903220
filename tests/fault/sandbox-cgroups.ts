import { join } from "node:path";
import { instanceOf, type Platform } from "@skerry/testkit";
import { foldersIn } from "@skerry/testkit/leftovers";

/** The ids of all sandboxes that have a group in any cgroup hierarchy of this host. */
export function sandboxCgroups(platform: Platform): string[] {
  const parent = `skerry-${instanceOf(platform.dataDir)}`;
  const roots = ["", ...foldersIn("/sys/fs/cgroup")];
  return roots.flatMap((root) => foldersIn(join("/sys/fs/cgroup", root, parent)));
}
