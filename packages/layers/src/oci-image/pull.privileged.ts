// Pulls an OCI image from a registry into an OCI layout directory. The first request resolves the image's name to a digest and has a short
// timeout, so that a registry that does not answer costs seconds. The second one copies exactly that digest.

import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import { type OciImageConfig, parseOciImageConfig } from "./config.ts";
import { formatOciImageReference, type OciImageReference } from "./reference.ts";
import { type RegistryAccess, runSkopeo } from "./skopeo.privileged.ts";

export interface PulledOciImage {
  /** Canonical: the registry is named. */
  readonly reference: string;
  /** What the name pointed to, as other tools show it: of the index where there are images for several processors. */
  readonly digest: string;
  readonly config: OciImageConfig;
  /** The OCI layout directory; the image's tag in it is `IMAGE_TAG`. */
  readonly layoutDir: string;
}

export interface PullOptions extends RegistryAccess {
  /** An empty directory that only root can look into. The caller removes it, also after a failure. */
  readonly dir: string;
  /** How long the registry may take to say what the name points to. */
  readonly answerTimeoutMs?: number;
  readonly pullTimeoutMs?: number;
}

export const IMAGE_TAG = "image";
const ANSWER_TIMEOUT_MS = 10_000;
const PULL_TIMEOUT_MS = 900_000;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

export async function pullOciImage(reference: OciImageReference, options: PullOptions): Promise<PulledOciImage> {
  const digest = await resolveDigest(reference, options);
  const layoutDir = join(options.dir, "layout");
  await mkdir(layoutDir, { mode: 0o700 });
  await runSkopeo(options, {
    reference,
    workDir: options.dir,
    timeoutMs: options.pullTimeoutMs ?? PULL_TIMEOUT_MS,
    args: ({ access }) => [
      "copy",
      "--quiet",
      // What comes in Zstandard is packed anew: not every version of the program that unpacks it knows that.
      "--dest-compress-format=gzip",
      ...access("src-"),
      source(reference, digest),
      `oci:${layoutDir}:${IMAGE_TAG}`,
    ],
  });
  const name = formatOciImageReference(reference);
  const config = await readConfig(layoutDir);
  if (config.architecture !== ARCHITECTURES[process.arch]) {
    const message = `OCI image ${name}: it is for ${config.architecture || "an unknown processor"}, not for this machine's`;
    throw new PlatformError("oci_image_unusable", message, { publicMessage: message });
  }
  return { reference: name, digest, config, layoutDir };
}

/** The digest that an image's name points to now. Fails within `answerTimeoutMs`. */
export async function resolveDigest(reference: OciImageReference, options: PullOptions): Promise<string> {
  const { dir: workDir, answerTimeoutMs: timeoutMs = ANSWER_TIMEOUT_MS } = options;
  const manifest = await runSkopeo(options, {
    reference,
    workDir,
    timeoutMs,
    args: ({ access }) => ["inspect", "--raw", ...access(""), source(reference, reference.digest)],
  });
  return reference.digest ?? `sha256:${createHash("sha256").update(manifest).digest("hex")}`;
}

/** With a digest the tag says nothing more, and skopeo takes only one of the two. */
const source = (reference: OciImageReference, digest: string | undefined) =>
  `docker://${formatOciImageReference(digest === undefined ? reference : { ...reference, tag: undefined, digest })}`;

async function readConfig(layoutDir: string): Promise<OciImageConfig> {
  interface Descriptor {
    readonly digest: string;
  }
  const read = async (path: string) => await readFile(join(layoutDir, path), "utf8");
  const blob = async ({ digest }: Descriptor) => await read(`blobs/${digest.replace(":", "/")}`);
  // Both files were written by skopeo just now, and name blobs whose digests it has checked.
  const { manifests } = JSON.parse(await read("index.json")) as { manifests: [Descriptor] };
  const { config } = JSON.parse(await blob(manifests[0])) as { config: Descriptor };
  return parseOciImageConfig(await blob(config));
}
