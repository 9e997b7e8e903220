import { PlatformError, SubprocessError } from "@skerry/base";
import type { LayersErrorCode } from "../errors.ts";

/** Failures of pulling an OCI image: a code, and a sentence that is safe to show to the user who named the image. */
const KINDS: readonly { readonly says: RegExp; readonly code: LayersErrorCode; readonly means: string }[] = [
  {
    says: /digest did not match|digest mismatch|does not match|unexpected EOF|invalid checksum/i,
    code: "oci_image_damaged",
    means: "what the registry sent is not what it named",
  },
  {
    says: /unauthorized|authentication required|invalid username\/password|\bdenied: |access to the resource is denied|\bforbidden\b/i,
    code: "oci_image_access_denied",
    means: "the registry does not let this user have it, or it does not exist",
  },
  { says: /manifest unknown|name unknown|not found|\b404\b/i, code: "oci_image_not_found", means: "the registry has no such image" },
  {
    says: /toomanyrequests|too many requests/i,
    code: "registry_busy",
    means: "the registry takes no more requests from this machine for now",
  },
  {
    says: /no image found in (?:manifest list|image index)|no such architecture/i,
    code: "oci_image_unusable",
    means: "there is none for this machine's processor",
  },
  {
    says: /pinging container registry|no such host|connection re(?:fused|set)|i\/o timeout|deadline exceeded|no route to host|network is unreachable|x509|tls:|server gave HTTP response/i,
    code: "registry_unreachable",
    means: "the registry can't be reached",
  },
];

/** The programs that pull say what failed in one line of text only. */
export function registryFailure(reference: string, error: unknown): PlatformError {
  const text = error instanceof Error ? error.message : String(error);
  const timedOut = error instanceof SubprocessError && error.timedOut;
  const kind: { readonly code: LayersErrorCode; readonly means: string } = timedOut
    ? { code: "registry_unreachable", means: "the registry took too long" }
    : (KINDS.find(({ says }) => says.test(text)) ?? { code: "oci_image_pull_failed", means: "it could not be pulled" });
  const publicMessage = `OCI image ${reference}: ${kind.means}`;
  return new PlatformError(kind.code, `${publicMessage}: ${lastLine(text)}`, { publicMessage, cause: error });
}

function lastLine(text: string): string {
  const line = text.trim().split("\n").at(-1) ?? "";
  return (/\bmsg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1] ?? line)
    .replaceAll('\\"', '"')
    .replace(/^Error parsing image name "[^"]*": /, "")
    .slice(0, 500);
}
