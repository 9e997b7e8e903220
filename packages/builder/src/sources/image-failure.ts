import { PlatformError } from "@skerry/base";
import { BuildFailure } from "../build-failure.ts";

const REASONS: Partial<Record<PlatformError["code"], (name: string) => string>> = {
  oci_image_not_found: (name) => `image '${name}' not found: the image or tag does not exist in the registry`,
  oci_repository_missing: (name) => `repository '${name}' not found: verify the image name is correct`,
  oci_image_access_denied: (name) => `access denied to '${name}': authentication required or insufficient permissions`,
  oci_image_forbidden: (name) => `access denied to '${name}': you don't have permission to pull this image`,
};

/** Reasons that need no name of an image. */
const PLAIN = new Set<PlatformError["code"]>(["oci_image_wrong_architecture", "oci_image_too_large", "oci_image_reference_invalid"]);

/** The reason of a build whose image cannot be had; an error that is not the image's or its registry's stays as it is. */
export function imageFailure(name: string, error: unknown): unknown {
  if (!(error instanceof PlatformError) || !/^(oci_|registry_)/.test(error.code)) return error;
  const message = messageOf(name, error);
  return new BuildFailure(message, { step: "base", cause: error });
}

function messageOf(name: string, error: PlatformError): string {
  const known = REASONS[error.code];
  if (known) return known(name);
  if (PLAIN.has(error.code)) return error.publicMessage ?? error.message;
  const why = (error.publicMessage ?? "").replace(/^OCI image (?:\S+: )?/, "");
  if (error.code === "registry_status") return `failed to pull image '${name}': ${why}`;
  return `failed to pull image '${name}': unable to retrieve image from registry${why === "" ? "" : `: ${why}`}`;
}
