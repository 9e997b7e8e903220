import { PlatformError } from "@skerry/base";

/** "sha256:" and 64 hex digits. */
export type LayerDigest = string & { readonly __brand: "LayerDigest" };

export function parseLayerDigest(text: string): LayerDigest {
  if (!/^sha256:[0-9a-f]{64}$/.test(text)) throw new PlatformError("layer_digest_invalid", `not a layer digest: ${text.slice(0, 100)}`);
  return text as LayerDigest;
}

/**
 * The directory name of a layer: the first 24 hex digits of its digest. Short, because all the layers of an overlay mount have to fit
 * into one page of options.
 */
export function shortNameOf(digest: LayerDigest): string {
  return digest.slice("sha256:".length, "sha256:".length + SHORT_NAME_LENGTH);
}

export const SHORT_NAME_LENGTH = 24;
export const SHORT_NAME = /^[0-9a-f]{24}$/;
