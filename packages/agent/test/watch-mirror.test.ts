// A client that applies all events of a recursive watcher knows the content of the tree, whatever happened in it.

import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { agentOfFile } from "./agent-under-test.ts";
import { openWatch, whileStopped } from "./watching.ts";

const agent = await agentOfFile();

type Step = readonly [kind: "dir" | "file" | "move" | "remove", from: string, to: string];

const place = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
const steps = fc.array(fc.tuple(fc.constantFrom("dir", "file", "move", "move", "remove"), place, place), { minLength: 5, maxLength: 40 });

/** Makes one change. Does nothing if the file system refuses it. */
function apply(root: string, [kind, from, to]: Step): void {
  // A folder outside the tree, from which files come back.
  const target = to.startsWith("c/c") ? join(root, "../outside", to.replaceAll("/", "-")) : join(root, to);
  try {
    if (kind === "dir") mkdirSync(join(root, from), { recursive: true });
    else if (kind === "file") writeFileSync(join(root, from), "x");
    else if (kind === "move" && from.startsWith("c/")) renameSync(target, join(root, from));
    else if (kind === "move") renameSync(join(root, from), target);
    else rmSync(join(root, from), { recursive: true, force: true });
  } catch {
    // The path does not exist, is not empty, or is inside itself.
  }
}

function mirror(tree: Set<string>, events: readonly string[]): void {
  for (const event of events) {
    const [type = "", name = ""] = event.split(" ");
    if (type === "CREATE") tree.add(name);
    if (type !== "REMOVE" && type !== "RENAME") continue;
    for (const path of [...tree]) if (path === name || path.startsWith(`${name}/`)) tree.delete(path);
  }
}

it.each([
  ["one by one", false],
  ["all at once", true],
])("follows random changes that are seen %s", async (_, atOnce) => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const folder = await realpath(await mkdtemp(join(tmpdir(), "skerry-mirror-")));
      const root = join(folder, "root");
      for (const path of [root, join(folder, "outside")]) mkdirSync(path);
      const watcher = await openWatch(agent, { path: root, recursive: true });
      const tree = new Set<string>();
      const run = (chosen: readonly Step[]) => {
        for (const step of chosen) apply(root, step);
      };
      try {
        if (atOnce) whileStopped(agent, () => run(all as Step[]));
        for (const step of atOnce ? [] : (all as Step[])) {
          run([step]);
          if (all.length % 2 === 0) mirror(tree, await watcher.poll());
        }
        mirror(tree, await watcher.poll());
        expect([...tree].sort()).toEqual((readdirSync(root, { recursive: true }) as string[]).sort());
      } finally {
        await watcher.remove();
        await rm(folder, { recursive: true, force: true });
      }
    }),
    { numRuns: 60 },
  );
});
