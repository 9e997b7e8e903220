// The template of `./skerry soak restore`. It has two layers, so that a change of the soak's Go program does not rebuild the large one.
// Platforms do not register this template by themselves: the soak writes a template file for its own platform.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type LayerStore, openLayerStore, parseLayerDigest } from "@skerry/layers";
import { type Distribution, detectDistribution, findDistribution, readOwnOsRelease } from "../base/distribution.ts";
import type { DataFolder } from "../folder/data-folder.ts";
import { readJsonFile, writeJsonFile } from "../folder/json-file.ts";
import { takeSetupLock } from "../folder/setup-lock.ts";
import type { Report } from "../steps.ts";
import { buildGoProgram, goProgramHash } from "./build-go-program.ts";
import { soakRecipeHash } from "./soak-recipe.ts";

/** soak.json of a data folder. */
export interface SoakTemplate {
  readonly system: { readonly recipe: string; readonly distribution: string; readonly layer: string };
  readonly goProgram: { readonly hash: string; readonly layer: string };
}

/** Holds the layers: no platform that has them registers this template, so nothing else refers to them. */
const HOLDER = "template-soak";

export interface EnsureSoakOptions {
  readonly repoRoot: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The soak's layers in the data folder's layer store. Builds layers that are missing or out of date. */
export async function ensureSoakTemplate(
  folder: DataFolder,
  options: EnsureSoakOptions,
): Promise<{ template: SoakTemplate; built: boolean }> {
  // A lock of its own: this takes minutes, and runs of other tests must not wait for it.
  await using _lock = await takeSetupLock(join(folder.root, "soak.lock"), { wait: true });
  const file = join(folder.root, "soak.json");
  const before = await readJsonFile<SoakTemplate>(file);
  const store = await openLayerStore(folder.layersDir);
  if (before) await store.hold(HOLDER, [before.system.layer, before.goProgram.layer].map(parseLayerDigest));
  const isHere = async (layer: string | undefined) => layer !== undefined && (await store.has(parseLayerDigest(layer)));
  const system = await wantedSystem(options.repoRoot);
  const isSystemCurrent = before?.system.recipe === system.recipe && (await isHere(before.system.layer));
  const sourcesDir = join(options.repoRoot, "tests/soak/restore/guests/go");
  const hash = await goProgramHash(sourcesDir);
  const isProgramCurrent = before?.goProgram.hash === hash && (await isHere(before.goProgram.layer));
  if (before && isSystemCurrent && isProgramCurrent) return { template: before, built: false };

  // The small layer first, so that an error in it is reported early.
  const programLayer = isProgramCurrent
    ? before.goProgram.layer
    : await makeLayer(store, (target) => buildGoProgram({ ...options, sourcesDir, target, workDir: folder.workDir }));
  // On demand: it loads the node.
  const { makeSystemLayer } = await import("./system-layer.ts");
  const systemLayer = isSystemCurrent
    ? before.system.layer
    : await makeSystemLayer({ store, holder: HOLDER, folder, distribution: system.distribution, ...options });
  const template: SoakTemplate = {
    system: { recipe: system.recipe, distribution: `${system.distribution.id} ${system.distribution.codename}`, layer: systemLayer },
    goProgram: { hash, layer: programLayer },
  };
  await writeJsonFile(file, template);
  await store.hold(HOLDER, [systemLayer, programLayer].map(parseLayerDigest));
  return { template, built: true };
}

/** Debian on every host: Ubuntu has no package of Chromium, only a reference to its snap store. */
async function wantedSystem(repoRoot: string): Promise<{ recipe: string; distribution: Distribution }> {
  const own = await readOwnOsRelease();
  const bookworm = { ID: "debian", VERSION_CODENAME: "bookworm" };
  const distribution = (own.ID === "debian" ? undefined : await findDistribution(bookworm)) ?? (await detectDistribution());
  const npm = JSON.parse(await readFile(join(repoRoot, "node_modules/npm/package.json"), "utf8")) as { version: string };
  const recipe = soakRecipeHash({
    distribution: `${distribution.id} ${distribution.codename}`,
    arch: process.arch,
    nodeVersion: process.version,
    npmVersion: npm.version,
  });
  return { recipe, distribution };
}

async function makeLayer(store: LayerStore, fill: (target: string) => Promise<void>): Promise<string> {
  const target = await store.stagingDir();
  try {
    await fill(target);
    return await store.adopt(target, { holder: HOLDER });
  } catch (error) {
    await store.discard(target);
    throw error;
  }
}
