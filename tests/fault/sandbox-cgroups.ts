import { readdirSync } from "node:fs";
import { join } from "node:path";
import { instanceOf, type Platform } from "@skerry/testkit";

/** The ids of all sandboxes that have a group in any cgroup hierarchy of this host. */
export function sandboxCgroups(platform: Platform): string[] {
  const parent = `skerry-${instanceOf(platform.dataDir)}`;
  return ["/sys/fs/cgroup", ...readdirSync("/sys/fs/cgroup").map((name) => join("/sys/fs/cgroup", name))].flatMap((root) => {
    try {
      return readdirSync(join(root, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => entry.name);
    } catch {
      return [];
    }
  });
}
