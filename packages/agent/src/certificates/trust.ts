// A certificate authority of the platform's that programs in this sandbox should trust, on top of the image's own.
//
// Appending is all that has to happen before /init answers; what was appended before is taken out again behind it, with a
// rename, so that no program ever reads half a bundle.

import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export interface TrustPaths {
  /** What OpenSSL, curl and most others read. */
  readonly bundle: string;
  /** Where `update-ca-certificates` finds it when it makes the bundle anew. */
  readonly source: string;
}

export const SYSTEM_TRUST: TrustPaths = {
  bundle: "/etc/ssl/certs/ca-certificates.crt",
  source: "/usr/local/share/ca-certificates/e2b-ca.crt",
};

export class TrustError extends Error {}

export class Trust {
  readonly #paths: TrustPaths;
  #current: string | undefined;

  constructor(paths: TrustPaths = SYSTEM_TRUST) {
    this.#paths = paths;
  }

  /** Throws TrustError when this image has no bundle. The function that comes back does the rest. */
  add(pem: string): () => void {
    const { bundle, source } = this.#paths;
    const next = `${pem.replace(/\n+$/, "")}\n`;
    if (next === this.#current) return () => {};
    if (!existsSync(bundle)) throw new TrustError(`${bundle} does not exist`);
    const previous = this.#current;
    appendFileSync(bundle, next);
    this.#current = next;
    return () => {
      mkdirSync(dirname(source), { recursive: true });
      writeFileSync(source, next);
      if (previous === undefined) return;
      const rest = withoutFirst(readFileSync(bundle, "utf8"), previous);
      writeFileSync(`${bundle}.skerry`, rest, { mode: 0o644 });
      renameSync(`${bundle}.skerry`, bundle);
    };
  }
}

function withoutFirst(text: string, part: string): string {
  const at = text.indexOf(part);
  return at < 0 ? text : text.slice(0, at) + text.slice(at + part.length);
}
