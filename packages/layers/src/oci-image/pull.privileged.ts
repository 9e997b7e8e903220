// Pulls an OCI image from a registry into an OCI layout directory, in three steps: what the name points to now, what that is, and its
// blobs. The first two are short requests with short timeouts, so that a registry that does not answer costs seconds, and an image that
// cannot be used is refused before its layers are pulled. The third one copies exactly the digest of the first.

import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import { type OciImageConfig, parseOciImageConfig } from "./config.ts";
import { type OciDescriptor, type OciIndexEntry, parseOciManifest } from "./manifest.ts";
import { watchPull } from "./pull-watch.privileged.ts";
import { formatOciImageReference, type OciImageReference } from "./reference.ts";
import { type RegistryAccess, runSkopeo } from "./skopeo.privileged.ts";

export interface RegistryOptions extends RegistryAccess {
  /** A directory that only root can look into. The caller removes what is in it, also after a failure. */
  readonly dir: string;
  /** How long the registry may take for one of the short requests. */
  readonly answerTimeoutMs?: number;
  /** Maximum size of an image, unpacked. */
  readonly maxBytes?: number;
}

export interface ResolvedOciImage {
  readonly name: OciImageReference;
  /** Canonical: the registry is named. */
  readonly reference: string;
  /** What the name points to, as other tools show it: of the index where there are images for several processors. */
  readonly digest: string;
  readonly manifest: string;
}

export interface OciImage extends ResolvedOciImage {
  /** Of the image for this machine's processor. */
  readonly manifestDigest: string;
  readonly config: OciImageConfig;
  /** Lowest first. */
  readonly layers: readonly OciDescriptor[];
}

export interface PulledOciImage extends OciImage {
  /** The OCI layout directory; the image's tag in it is `IMAGE_TAG`. */
  readonly layoutDir: string;
}

export interface PullOptions extends RegistryOptions {
  readonly pullTimeoutMs?: number;
  /** How long the registry may send nothing. */
  readonly silenceMs?: number;
}

export const IMAGE_TAG = "image";
const ANSWER_TIMEOUT_MS = 15_000;
const PULL_TIMEOUT_MS = 900_000;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** The digest that an image's name points to now. */
export async function resolveOciImage(name: OciImageReference, options: RegistryOptions): Promise<ResolvedOciImage> {
  const manifest = await inspect(name, name.digest, ["--raw"], options);
  return { name, reference: formatOciImageReference(name), digest: name.digest ?? sha256(manifest), manifest };
}

/** Throws PlatformError("oci_image_wrong_architecture") when there is no image for this machine's processor. */
export async function describeOciImage(resolved: ResolvedOciImage, options: RegistryOptions): Promise<OciImage> {
  const { name, digest } = resolved;
  let manifest = parseOciManifest(resolved.manifest);
  let manifestDigest = digest;
  if (manifest.kind === "index") {
    manifestDigest = choose(manifest.images).digest;
    manifest = parseOciManifest(await inspect(name, manifestDigest, ["--raw"], options));
    if (manifest.kind === "index") throw new PlatformError("oci_image_unusable", "an index of images names another index");
  }
  assertFits(manifest.layers, options.maxBytes);
  const config = parseOciImageConfig(await inspect(name, manifestDigest, ["--raw", "--config"], options));
  if (config.architecture !== wantedArchitecture()) throw wrongArchitecture(config.architecture);
  return { ...resolved, manifestDigest, config, layers: manifest.layers };
}

/** Preconditions: `options.dir` has no `layout`. */
export async function pullOciImage(image: OciImage, options: PullOptions): Promise<PulledOciImage> {
  const layoutDir = join(options.dir, "layout");
  await mkdir(layoutDir, { mode: 0o700 });
  await using watch = watchPull({ image, layoutDir, silenceMs: options.silenceMs, signal: options.signal });
  try {
    await runSkopeo(
      { ...options, signal: watch.signal },
      {
        reference: image.name,
        workDir: options.dir,
        timeoutMs: options.pullTimeoutMs ?? PULL_TIMEOUT_MS,
        args: ({ access }) => [
          "copy",
          "--quiet",
          ...compression(image),
          ...access("src-"),
          source(image.name, image.manifestDigest),
          `oci:${layoutDir}:${IMAGE_TAG}`,
        ],
      },
    );
  } catch (error) {
    options.signal?.throwIfAborted();
    throw watch.failure ?? error;
  }
  return { ...image, layoutDir };
}

function choose(images: readonly OciIndexEntry[]): OciIndexEntry {
  const found = images.find(({ os, architecture }) => os === "linux" && architecture === wantedArchitecture());
  // An index also names what is no image, such as attestations.
  const others = [...new Set(images.map(({ architecture }) => architecture).filter((name) => name !== "" && name !== "unknown"))];
  if (!found) throw wrongArchitecture(others.join(", "));
  return found;
}

/** Before anything is pulled: layers are larger when they are unpacked. */
function assertFits(layers: readonly OciDescriptor[], maxBytes = Number.POSITIVE_INFINITY): void {
  const bytes = layers.reduce((sum, { size }) => sum + size, 0);
  if (bytes > maxBytes) throw tooLarge(`is at least ${Math.ceil(bytes / 1_000_000)} MB`, maxBytes);
}

export function tooLarge(size: string, maxBytes: number): PlatformError {
  const message = `the image is too large: its uncompressed size ${size}, and the maximum is ${Math.floor(maxBytes / 1_000_000)} MB`;
  return new PlatformError("oci_image_too_large", message, { publicMessage: message });
}

const wantedArchitecture = () => ARCHITECTURES[process.arch] ?? process.arch;

function wrongArchitecture(found: string): PlatformError {
  const message = `image architecture "${found.slice(0, 200) || "unknown"}" does not match expected "${wantedArchitecture()}"`;
  return new PlatformError("oci_image_wrong_architecture", message, { publicMessage: message });
}

function inspect(name: OciImageReference, digest: string | undefined, flags: readonly string[], options: RegistryOptions): Promise<string> {
  const { dir: workDir, answerTimeoutMs: timeoutMs = ANSWER_TIMEOUT_MS } = options;
  return runSkopeo(options, {
    reference: name,
    workDir,
    timeoutMs,
    args: ({ access }) => ["inspect", ...flags, ...access(""), source(name, digest)],
  });
}

/**
 * Layers stay as they are, so that no more is written than the manifest names. Those in Zstandard are packed anew: Node.js reads only the first
 * frame of a file.
 */
function compression({ layers }: OciImage): readonly string[] {
  const hasZstd = layers.some(({ mediaType }) => mediaType.includes("zstd"));
  return hasZstd ? ["--dest-compress-format=gzip"] : ["--dest-oci-accept-uncompressed-layers"];
}

const sha256 = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

/** With a digest the tag says nothing more, and skopeo takes only one of the two. */
const source = (reference: OciImageReference, digest: string | undefined) =>
  `docker://${formatOciImageReference(digest === undefined ? reference : { ...reference, tag: undefined, digest })}`;
