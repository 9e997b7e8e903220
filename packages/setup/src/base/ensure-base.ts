import { randomInt, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { hostArch, koffiAddon } from "@skerry/agent/assemble";
import { openLayerStore, parseLayerDigest } from "@skerry/layers";
import { fileDigest } from "../download.ts";
import type { DataFolder } from "../folder/data-folder.ts";
import { readJsonFile, writeJsonFile } from "../folder/json-file.ts";
import type { RuntimeName } from "../folder/settings.ts";
import type { Report } from "../steps.ts";
import { NO_IMAGE, parseBaseImage, wantedBaseImage } from "./base-image.ts";
import type { BaseOrigin } from "./build-base.ts";
import { readOwnOsRelease } from "./distribution.ts";
import { recipeHash } from "./recipe.ts";

/** templates/base.json: the platform registers it as the template `base`. */
export interface BaseTemplate {
  readonly templateId: string;
  readonly alias: "base";
  readonly buildId: string;
  readonly layers: readonly string[];
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
  readonly distribution: string;
  /** The requested OCI image, or "none". */
  readonly wantedImage?: string;
  readonly origin?: BaseOrigin;
  readonly recipe: string;
  readonly builtAt: string;
}

const DISK_SIZE_MB = 10_240;
/** Holds the layer, which the node would otherwise take for an unused one until the platform has registered the template. */
const HOLDER = "template-base";

export interface EnsureBaseOptions {
  readonly repoRoot: string;
  /** SKERRY_BASE_IMAGE. Undefined if it is not set. */
  readonly baseImage: string | undefined;
  /** The runtime of the sandboxes that it is built in. */
  readonly runtime: RuntimeName;
  /** The operator's environment: the settings of sandboxes' network. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The base template of this data folder. Builds it if there is none, or if the recipe or the wanted image has changed. */
export async function ensureBaseTemplate(
  folder: DataFolder,
  options: EnsureBaseOptions,
): Promise<{ template: BaseTemplate; built: boolean }> {
  const { repoRoot } = options;
  const npmDir = join(repoRoot, "node_modules/npm");
  const { version: npmVersion } = JSON.parse(await readFile(join(npmDir, "package.json"), "utf8")) as { version: string };
  const { ID, VERSION_CODENAME } = await readOwnOsRelease();
  const own = `${ID} ${VERSION_CODENAME}`;
  const koffiDigest = await fileDigest(koffiAddon(hostArch()), "sha256");
  const recipe = recipeHash({ distribution: own, arch: process.arch, nodeVersion: process.version, npmVersion, koffiDigest });
  const before = await readJsonFile<BaseTemplate>(folder.templateFile);
  const wantedImage = wantedBaseImage(options.baseImage, before);
  const image = parseBaseImage(wantedImage);
  const store = await openLayerStore(folder.layersDir);
  const isSame = before?.recipe === recipe && (before.wantedImage ?? NO_IMAGE) === wantedImage;
  if (before && isSame && (await store.hold(HOLDER, before.layers.map(parseLayerDigest)))) {
    // Records of earlier versions have no disk size.
    const template = { ...before, diskSizeMB: before.diskSizeMB ?? DISK_SIZE_MB };
    if (before.diskSizeMB === undefined) await writeJsonFile(folder.templateFile, template);
    return { template, built: false };
  }

  // On demand: it loads the node.
  const { buildBase } = await import("./build-base.ts");
  const built = await buildBase({ ...options, folder, store, holder: HOLDER, image, npmDir });
  const template: BaseTemplate = {
    templateId: before?.templateId ?? newTemplateId(),
    alias: "base",
    buildId: randomUUID(),
    layers: [built.layer],
    cpuCount: 2,
    memoryMB: 512,
    diskSizeMB: DISK_SIZE_MB,
    distribution: `${built.distribution.id} ${built.distribution.codename}`,
    wantedImage,
    origin: built.origin,
    recipe,
    builtAt: new Date().toISOString(),
  };
  await writeJsonFile(folder.templateFile, template);
  await store.hold(HOLDER, [parseLayerDigest(built.layer)]);
  return { template, built: true };
}

function newTemplateId(): string {
  const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  return Array.from({ length: 20 }, () => alphabet[randomInt(alphabet.length)]).join("");
}
