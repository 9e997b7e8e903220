import { randomInt, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { openLayerStore, parseLayerDigest } from "@skerry/layers";
import type { DataFolder } from "../../data-folder.ts";
import { readJsonFile, writeJsonFile } from "../../json-file.ts";
import type { Report } from "../../terminal/steps.ts";
import { buildBase } from "./build-base.ts";
import { detectDistribution } from "./distribution.ts";
import { recipeHash } from "./recipe.ts";

/** templates/base.json: what the platform registers as the template `base`. */
export interface BaseTemplate {
  readonly templateId: string;
  readonly alias: "base";
  readonly buildId: string;
  readonly layers: readonly string[];
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly distribution: string;
  readonly recipe: string;
  readonly builtAt: string;
}

/** The base template of this data folder; made when there is none, or when the recipe has changed since. */
export async function ensureBaseTemplate(
  folder: DataFolder,
  options: { repoRoot: string; report: Report; signal: AbortSignal },
): Promise<{ template: BaseTemplate; built: boolean }> {
  const { repoRoot, report, signal } = options;
  const distribution = await detectDistribution();
  const npmDir = join(repoRoot, "node_modules/npm");
  const { version: npmVersion } = JSON.parse(await readFile(join(npmDir, "package.json"), "utf8")) as { version: string };
  const name = `${distribution.id} ${distribution.codename}`;
  const recipe = recipeHash({ distribution: name, arch: process.arch, nodeVersion: process.version, npmVersion });
  const before = await readJsonFile<BaseTemplate>(folder.templateFile);
  const store = await openLayerStore(folder.layersDir);
  if (before && before.recipe === recipe && (await everyLayer(store, before.layers))) return { template: before, built: false };

  const target = await store.stagingDir();
  try {
    await buildBase({ target, distribution, nodeBinary: process.execPath, npmDir, report, signal });
    report("taking the digest");
    const digest = await store.adopt(target);
    const template: BaseTemplate = {
      templateId: before?.templateId ?? newTemplateId(),
      alias: "base",
      buildId: randomUUID(),
      layers: [digest],
      cpuCount: 2,
      memoryMB: 512,
      distribution: name,
      recipe,
      builtAt: new Date().toISOString(),
    };
    await writeJsonFile(folder.templateFile, template);
    return { template, built: true };
  } catch (error) {
    // mmdebstrap may leave proc, sys and dev mounted when it is killed: never walk into those.
    await runCommand("umount", ["--recursive", join(target, "proc"), join(target, "sys"), join(target, "dev")]).catch(() => {});
    await runCommand("rm", ["-rf", "--one-file-system", target], { timeoutMs: 120_000 });
    throw error;
  }
}

async function everyLayer(store: Awaited<ReturnType<typeof openLayerStore>>, layers: readonly string[]): Promise<boolean> {
  for (const layer of layers) if (!(await store.has(parseLayerDigest(layer)))) return false;
  return true;
}

function newTemplateId(): string {
  const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  return Array.from({ length: 20 }, () => alphabet[randomInt(alphabet.length)]).join("");
}
