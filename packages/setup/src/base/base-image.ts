import { asError } from "@skerry/base";
import { type OciImageReference, parseOciImageReference } from "@skerry/layers";
import { OperatorError } from "../operator-error.ts";

/** Default OCI image of the base template: the distribution that the template is tested with. */
export const DEFAULT_BASE_IMAGE = "docker.io/library/debian:bookworm-slim";

/** Value for no image: the template is built from the host's package archive. */
export const NO_IMAGE = "none";

/** The OCI image to use: the setting SKERRY_BASE_IMAGE, or the image of the existing template, or the default. */
export function wantedBaseImage(setting: string | undefined, before: { readonly wantedImage?: string } | undefined): string {
  if (setting !== undefined) return setting === "" ? NO_IMAGE : setting;
  // A template without a recorded image was built from the archive, and stays as it is.
  if (before) return before.wantedImage ?? NO_IMAGE;
  return DEFAULT_BASE_IMAGE;
}

export function parseBaseImage(wanted: string): OciImageReference | undefined {
  if (wanted === NO_IMAGE) return undefined;
  try {
    return parseOciImageReference(wanted);
  } catch (cause) {
    throw new OperatorError(`SKERRY_BASE_IMAGE: ${asError(cause).message}`, {
      exit: "usage",
      hints: [`Set it to an image of Debian or Ubuntu, such as ${DEFAULT_BASE_IMAGE}, or to "${NO_IMAGE}".`],
      cause,
    });
  }
}
