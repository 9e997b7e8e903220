// An image of a registry. Each build asks the registry what the name points to now, so a tag that was moved is noticed, and nobody gets an
// image from the cache that the registry would not give. What the digest stands for is cached: the image as one layer, and above it the
// layer of provisioning.

import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  describeOciImage,
  type LayerDigest,
  type OciImage,
  parseOciImageReference,
  pullOciImage,
  type RegistryOptions,
  resolveOciImage,
  unpackOciImage,
} from "@skerry/layers";
import type { ImageSource } from "@skerry/wire/node";
import type { CachedStep } from "../cache/step-cache.ts";
import { keyOf } from "../keys.ts";
import { imageFailure } from "./image-failure.ts";
import { provision, provisionVersion } from "./provision/provision.ts";
import { registryCredentials } from "./registry-credentials.ts";
import type { PreparedSource, SourceOptions } from "./source.ts";

const STEP = "base";
const MAX_IMAGE_MB = 25_000;

export async function prepareImage(source: ImageSource, options: SourceOptions): Promise<PreparedSource> {
  const { images, signal } = options;
  const dir = await mkdtemp(join(images.pullDir, "image-"));
  try {
    const name = parseOciImageReference(source.reference);
    const credentials = await registryCredentials(source, { settings: images, signal });
    const access: RegistryOptions = {
      dir,
      signal,
      maxBytes: (images.maxImageMb ?? MAX_IMAGE_MB) * 1_000_000,
      ...(images.registries && { registries: images.registries }),
      ...(credentials && { credentials }),
    };
    const resolved = await resolveOciImage(name, access);
    const keys = await keysOf(resolved.digest);
    const cached = options.force ? undefined : await findCached([keys.plain, keys.withTools], options);
    if (cached) {
      options.log({ level: "info", step: STEP, message: `CACHED [base] FROM ${source.reference} [${cached.key}]` });
      return { ...cached.step, key: cached.key, isCached: true };
    }
    options.log({ level: "info", step: STEP, message: `[base] FROM ${source.reference} [${keys.plain}]` });
    options.log({ level: "debug", step: STEP, message: `Requesting Docker Image ${resolved.reference} (${resolved.digest})` });
    const image = await describeOciImage(resolved, access);
    return await build({ image, access, keys }, options);
  } catch (error) {
    throw imageFailure(source.reference, error);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

interface Keys {
  /** Of the image alone. */
  readonly unpacked: string;
  readonly plain: string;
  /** Of an image that this machine's programs were added to. */
  readonly withTools: string;
}

async function keysOf(digest: string): Promise<Keys> {
  const unpacked = keyOf("image", digest, process.arch);
  const provisioned = async (tools: boolean) => keyOf("image", digest, process.arch, await provisionVersion({ tools }));
  return { unpacked, plain: await provisioned(false), withTools: await provisioned(true) };
}

async function findCached(keys: readonly string[], options: SourceOptions): Promise<{ key: string; step: CachedStep } | undefined> {
  const { cache, scope, layers, holder } = options;
  for (const key of keys) {
    const step = await cache.find(scope, key);
    if (step && (await layers.hold(holder, step.layers))) return { key, step };
  }
  return undefined;
}

async function build(
  { image, access, keys }: { image: OciImage; access: RegistryOptions; keys: Keys },
  options: SourceOptions,
): Promise<PreparedSource> {
  const { cache, scope, log } = options;
  const context = { user: "root", workdir: "", env: environmentOf(image) };
  const known = options.force ? undefined : await findCached([keys.unpacked], options);
  const layer = known?.step.layers[0] ?? (await unpack(image, access, options));
  if (!known) await cache.put(scope, keys.unpacked, { layers: [layer], context });
  log({ level: "info", step: STEP, message: "Provisioning sandbox template" });
  const provisioned = await provision(layer, context.env.PATH ?? "", options);
  log({ level: "info", step: STEP, message: "Sandbox template provisioned" });
  const layers = provisioned.layer === undefined ? [layer] : [layer, provisioned.layer];
  const key = provisioned.usedTools ? keys.withTools : keys.plain;
  if (provisioned.complete) await cache.put(scope, key, { layers, context });
  // Without what could not be installed, the steps are other ones.
  return { layers, context, key: provisioned.complete ? key : keyOf(key, layers), isCached: false };
}

async function unpack(image: OciImage, access: RegistryOptions, options: SourceOptions): Promise<LayerDigest> {
  const { layers, holder, signal, log } = options;
  const bytes = image.layers.reduce((sum, { size }) => sum + size, 0);
  log({ level: "info", step: STEP, message: `Base Docker image size: ${formatBytes(bytes)}` });
  log({ level: "info", step: STEP, message: "Creating file system and pulling Docker image" });
  const pulled = await pullOciImage(image, access);
  const target = await layers.stagingDir();
  try {
    for (const { digest, size } of image.layers) {
      log({ level: "info", step: STEP, message: `Uncompressing layer ${digest} ${formatBytes(size)}` });
    }
    await unpackOciImage(pulled, { target, signal, maxBytes: access.maxBytes });
    log({ level: "info", step: STEP, message: "Layers extracted" });
    return await layers.adopt(target, { holder });
  } catch (error) {
    await layers.discard(target);
    throw error;
  }
}

/** Entries without a name or a value are dropped. */
function environmentOf({ config }: OciImage): Record<string, string> {
  const entries = config.env.map(
    (entry) => [entry.slice(0, entry.indexOf("=")).trim(), entry.slice(entry.indexOf("=") + 1).trim()] as const,
  );
  return Object.fromEntries(entries.filter(([name, value]) => name !== "" && value !== ""));
}

function formatBytes(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1_000)} kB`;
  return bytes < 1_000_000_000 ? `${Math.round(bytes / 1_000_000)} MB` : `${(bytes / 1_000_000_000).toFixed(1)} GB`;
}
