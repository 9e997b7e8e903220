// Manifests of OCI images, and of Docker's, which have the same fields. Their author is not trusted: what does not fit is refused.

import { PlatformError } from "@skerry/base";

export interface OciDescriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

export type OciManifest =
  | { readonly kind: "image"; readonly config: OciDescriptor; readonly layers: readonly OciDescriptor[] }
  | { readonly kind: "index"; readonly images: readonly OciIndexEntry[] };

export interface OciIndexEntry extends OciDescriptor {
  readonly architecture: string;
  readonly os: string;
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** More than any tool makes, and few enough for a list of them in a log. */
const MAX_LAYERS = 1_000;

export function parseOciManifest(text: string): OciManifest {
  const manifest = asRecord(parseJson(text));
  if (Array.isArray(manifest.manifests)) {
    const images = manifest.manifests.map((entry) => {
      const { architecture, os } = asRecord(asRecord(entry).platform);
      return { ...asDescriptor(entry), architecture: asText(architecture), os: asText(os) };
    });
    return { kind: "index", images };
  }
  if (!Array.isArray(manifest.layers)) throw unusable("the manifest is of an unknown kind");
  if (manifest.layers.length > MAX_LAYERS) throw unusable(`the image has more than ${MAX_LAYERS} layers`);
  return { kind: "image", config: asDescriptor(manifest.config), layers: manifest.layers.map(asDescriptor) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unusable("the manifest is not JSON", cause);
  }
}

function asDescriptor(value: unknown): OciDescriptor {
  const { mediaType, digest, size } = asRecord(value);
  if (typeof digest !== "string" || !DIGEST.test(digest)) throw unusable("the manifest names something without a digest");
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) throw unusable("the manifest names something without a size");
  return { mediaType: asText(mediaType), digest, size };
}

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};

const asText = (value: unknown): string => (typeof value === "string" ? value : "");

function unusable(why: string, cause?: unknown): PlatformError {
  return new PlatformError("oci_image_unusable", `OCI image: ${why}`, { publicMessage: why, cause });
}
