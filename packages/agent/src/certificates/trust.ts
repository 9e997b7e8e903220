// Makes programs in this sandbox trust a certificate authority of the platform, beside those of the image.
//
// Before /init responds, the agent only appends the certificate to the bundle. Afterwards it removes the previous certificate by
// renaming a new file into place, so that no program ever reads a partial bundle.

import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export interface TrustPaths {
  /** The file that OpenSSL, curl and most other programs read. */
  readonly bundle: string;
  /** Where `update-ca-certificates` finds the certificate when it rebuilds the bundle. */
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

  /** Throws TrustError when the image has no bundle. The caller runs the returned function after it has responded. */
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
