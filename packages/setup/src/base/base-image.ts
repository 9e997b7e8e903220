import { asError } from "@skerry/base";
import { type OciImageReference, parseOciImageReference } from "@skerry/layers";
import { OperatorError } from "../operator-error.ts";

/** What the base template is made from where nothing else was asked for: the distribution that it is tested with. */
export const DEFAULT_BASE_IMAGE = "docker.io/library/debian:bookworm-slim";

/** No image: this machine's package archive is used, whatever could be reached. */
export const NO_IMAGE = "none";

/** The image that is asked for: what was said (SKERRY_BASE_IMAGE), else what this data folder was made with, else the default. */
export function wantedBaseImage(said: string | undefined, before: { readonly wantedImage?: string } | undefined): string {
  if (said !== undefined) return said === "" ? NO_IMAGE : said;
  // A template of before there was a choice came from the archive, and stays what it is.
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
