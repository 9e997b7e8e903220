import { PlatformError, SubprocessError } from "@skerry/base";
import type { LayersErrorCode } from "../errors.ts";

/** Failures of pulling an OCI image: a code, and words that are safe to show to the user who named the image. */
const KINDS: readonly { readonly says: RegExp; readonly code: LayersErrorCode; readonly means: string }[] = [
  {
    says: /digest did not match|digest mismatch|does not match|unexpected EOF|invalid checksum/i,
    code: "oci_image_damaged",
    means: "what the registry sent is not what it named",
  },
  {
    says: /unauthorized|authentication required|invalid username\/password|no basic auth credentials|status code 401|\b401 \(?Unauthorized/i,
    code: "oci_image_access_denied",
    means: "the registry asks for other credentials",
  },
  {
    says: /\bdenied: |access to the resource is denied|\bforbidden\b|status code 403|\b403 \(?Forbidden/i,
    code: "oci_image_forbidden",
    means: "the registry does not let this user have it, or it does not exist",
  },
  {
    says: /name unknown|repository name not known|NAME_UNKNOWN/i,
    code: "oci_repository_missing",
    means: "the registry has no such repository",
  },
  { says: /manifest unknown|not found|\b404\b/i, code: "oci_image_not_found", means: "the registry has no such image" },
  {
    says: /toomanyrequests|too many requests/i,
    code: "registry_busy",
    means: "the registry takes no more requests from this machine for now",
  },
  {
    says: /no image found in (?:manifest list|image index)|no such architecture/i,
    code: "oci_image_wrong_architecture",
    means: "there is none for this machine's processor",
  },
  {
    says: /x509|tls: (?:failed to verify|bad certificate|unknown certificate)/i,
    code: "registry_untrusted",
    means: "this machine does not trust the registry's certificate",
  },
  {
    says: /pinging container registry.*(?:dial|lookup|deadline|EOF|HTTP response)|no such host|connection re(?:fused|set)|i\/o timeout|deadline exceeded|no route to host|network is unreachable|tls:|server gave HTTP response/i,
    code: "registry_unreachable",
    means: "the registry can't be reached",
  },
  { says: /registry .*is blocked/i, code: "registry_blocked", means: "the operator of this platform blocks this registry" },
];

/** How the versions of skopeo in use tell a status that they did not expect. */
const STATUS = /(?:status(?: code)?(?: from registry)?:? |StatusCode: |HTTP code )(\d{3})\b/i;

/** The programs that pull say what failed in one line of text only. */
export function registryFailure(reference: string, error: unknown): PlatformError {
  const text = error instanceof Error ? error.message : String(error);
  const { code, means } = kindOf(text, error instanceof SubprocessError && error.timedOut);
  const publicMessage = `OCI image ${reference}: ${means}`;
  return new PlatformError(code, `${publicMessage}: ${lastLine(text)}`, { publicMessage, cause: error });
}

function kindOf(text: string, timedOut: boolean): { readonly code: LayersErrorCode; readonly means: string } {
  if (timedOut) return { code: "registry_unreachable", means: "the registry took too long" };
  const kind = KINDS.find(({ says }) => says.test(text));
  if (kind) return kind;
  const status = STATUS.exec(text)?.[1];
  if (status !== undefined) return { code: "registry_status", means: `registry returned status code ${status}` };
  return { code: "oci_image_pull_failed", means: "it could not be pulled" };
}

function lastLine(text: string): string {
  const line = text.trim().split("\n").at(-1) ?? "";
  return (/\bmsg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1] ?? line)
    .replaceAll('\\"', '"')
    .replace(/^Error parsing image name "[^"]*": /, "")
    .slice(0, 500);
}
