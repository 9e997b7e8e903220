import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { LayerDigest, LayerStore } from "@skerry/layers";

/** A layer with the host's bash and its libraries, for the scripts of the builder. */
export async function adoptBash(layers: LayerStore): Promise<LayerDigest> {
  const staged = await layers.stagingDir();
  const libraries = execFileSync("ldd", ["/bin/bash"], { encoding: "utf8" }).match(/\/\S+\.so\S*/g) ?? [];
  for (const path of ["/bin/bash", ...libraries]) {
    mkdirSync(join(staged, dirname(path)), { recursive: true });
    copyFileSync(path, join(staged, path));
  }
  return await layers.adopt(staged);
}
