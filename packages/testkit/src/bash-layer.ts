import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import type { LayerDigest, LayerStore } from "@skerry/layers";

/** A layer with the host's bash and its libraries, which steps of builds need. Each call adopts the same layer. */
export async function adoptBash(layers: LayerStore): Promise<LayerDigest> {
  const staged = await layers.stagingDir();
  const { stdout } = await runCommand("ldd", ["/bin/bash"]);
  for (const path of ["/bin/bash", ...(stdout.match(/\/\S+\.so\S*/g) ?? [])]) {
    mkdirSync(join(staged, dirname(path)), { recursive: true });
    copyFileSync(path, join(staged, path));
  }
  await runCommand("find", [staged, "-exec", "touch", "-h", "-d", "@1700000000", "{}", "+"]);
  return await layers.adopt(staged);
}
