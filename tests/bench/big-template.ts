import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Platform } from "@skerry/testkit";

/** Adds a template `big` with 2 GiB of memory, which allows 2,048 processes. */
export async function addBigTemplate(platform: Platform): Promise<void> {
  const dir = join(platform.dataDir, "templates");
  mkdirSync(dir, { recursive: true });
  const base = JSON.parse(readFileSync(join(dir, "base.json"), "utf8")) as Record<string, unknown>;
  const big = {
    ...base,
    alias: "big",
    memoryMB: 2048,
    templateId: "bigbigbigbigbigbigbi",
    buildId: "00000000-0000-4000-8000-000000000b16",
  };
  writeFileSync(join(dir, "big.json"), JSON.stringify(big));
  await platform.restart();
}
