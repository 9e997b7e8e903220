import { readFileSync } from "node:fs";
import { join } from "node:path";
import { testCacheDir } from "./test-cache.ts";

export interface TestTools {
  readonly runsc: string;
  readonly runc: string;
}

/** Paths of the pinned runtimes. Throws when they are not set up, because a missing runtime must fail a test and not skip it. */
export function testTools(): TestTools {
  const file = join(testCacheDir(), "tools.json");
  let tools: { runsc?: { path: string }; runc?: { path: string } };
  try {
    tools = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`${file} can't be read: run ./skerry test once, which sets up what the tests need`, { cause: error });
  }
  if (!tools.runsc || !tools.runc) throw new Error(`${file} does not name both runsc and runc: run ./skerry test once`);
  return { runsc: tools.runsc.path, runc: tools.runc.path };
}

/** The agents in the test cache, in the format of the configuration of a node. */
export function testAgents() {
  const dir = join(testCacheDir(), "agent");
  const { digest } = JSON.parse(readFileSync(join(dir, "current.json"), "utf8")) as { digest: string };
  return { dir, current: { digest, version: "0.0.0" } };
}
