// Names of OCI images as people write them (`debian:bookworm-slim`, `localhost:5000/team/app@sha256:…`), in one canonical form.
// What this parser lets through is safe as an argument of a program: it can't start with a dash or hold a space.

import { PlatformError } from "@skerry/base";

export interface OciImageReference {
  /** Host, with a port where one is named. */
  readonly registry: string;
  readonly repository: string;
  /** Undefined only when a digest is given. */
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

const DEFAULT_REGISTRY = "docker.io";
const HOST_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
const REGISTRY = new RegExp(`^(?:${HOST_LABEL}(?:\\.${HOST_LABEL})*|\\[[0-9a-fA-F:]+\\])(?::\\d{1,5})?$`);
const NAME_PART = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const REPOSITORY = new RegExp(`^${NAME_PART}(?:/${NAME_PART})*$`);
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** The limit of the reference grammar; it also keeps the patterns above from long inputs. */
const MAX_LENGTH = 512;

export function parseOciImageReference(text: string): OciImageReference {
  const invalid = (why: string) => {
    const message = `not a reference to an OCI image: ${JSON.stringify(text.slice(0, 200))} (${why})`;
    return new PlatformError("oci_image_reference_invalid", message, { publicMessage: message });
  };
  if (text.length > MAX_LENGTH) throw invalid("too long");
  const at = text.indexOf("@");
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !DIGEST.test(digest)) throw invalid("a digest is sha256: and 64 hex digits");
  const named = at < 0 ? text : text.slice(0, at);
  const colon = named.indexOf(":", named.lastIndexOf("/") + 1);
  const tag = colon < 0 ? undefined : named.slice(colon + 1);
  if (tag !== undefined && !TAG.test(tag)) throw invalid("a tag has letters, digits, underscores, dots and dashes");
  const { registry, repository } = splitName(colon < 0 ? named : named.slice(0, colon));
  if (!REGISTRY.test(registry)) throw invalid("the registry is not a host name");
  if (!REPOSITORY.test(repository)) throw invalid("a repository has lower-case letters, digits and single separators between them");
  return { registry, repository, tag: tag ?? (digest === undefined ? "latest" : undefined), digest };
}

/** `team/app` is on the default registry, `host.example/app` and `localhost/app` are not. */
function splitName(name: string): { registry: string; repository: string } {
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  if (first === "localhost" || /[.:]/.test(first)) return { registry: first, repository: name.slice(slash + 1) };
  return { registry: DEFAULT_REGISTRY, repository: slash < 0 ? `library/${name}` : name };
}

export function formatOciImageReference({ registry, repository, tag, digest }: OciImageReference): string {
  return `${registry}/${repository}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`;
}

/** This machine's own registries may speak plain HTTP, as with other tools; what is said to others is never in clear. */
export function isLoopbackRegistry({ registry }: Pick<OciImageReference, "registry">): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/.test(registry);
}
