// Makes programs in this sandbox reach the internet in the way that the operator's site requires: through its proxies, and with its
// certificate authorities, which intercept TLS.
//
// Programs find the authorities in three places:
//   - variables name a bundle: the image's authorities and the site's. Most libraries read such a variable.
//   - Node.js adds the authorities of one file to its own.
//   - the image's trust store, for programs that get no variables from the agent, such as those behind sudo.
// The first two files are in a memory file system, so they are part of no disk. The store is on the sandbox's disk. The certificates stand
// between two comments in it, so that a build can take them out of its layers.

import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { asError } from "@skerry/base";
import { BUNDLE_VARIABLES, NO_SITE, type SiteNetwork, TRUST_STORES, withoutSiteCertificates, withSiteCertificates } from "@skerry/wire";
import { stderrLogger } from "../log.ts";

export interface SitePaths {
  /** A folder in a memory file system. */
  readonly dir: string;
  readonly stores: readonly string[];
}

export const SITE_PATHS: SitePaths = { dir: "/dev/skerry", stores: TRUST_STORES };

/** Hosts that a proxy cannot reach: the sandbox itself. */
const OWN_HOSTS = ["localhost", "127.0.0.1", "::1"];

/** Larger than the store of any distribution, which takes 300 kB. */
const MAX_STORE_BYTES = 8 * 1024 * 1024;

interface Store {
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

export class SiteAccess {
  readonly #paths: SitePaths;
  #site: SiteNetwork = NO_SITE;
  /** The stores that the image has, by their real paths. */
  #real: readonly string[] = [];
  /** Those when they were last written or read. */
  #seen = "";

  constructor(paths: SitePaths = SITE_PATHS) {
    this.#paths = paths;
  }

  /** Replaces the former settings. A file that cannot be written is reported and left: the other ways still work. */
  become(site: SiteNetwork): void {
    this.#site = site;
    this.#write();
  }

  /**
   * The variables for a process. A variable that its caller sets is left out; a proxy also if the caller spells it in the other case,
   * because programs differ in which one they prefer.
   */
  variables(given: Readonly<Record<string, string>>): Record<string, string> {
    const { certificates, httpProxy, httpsProxy, noProxy } = this.#site;
    const variables: Record<string, string> = {};
    const set = (name: string, value: string) => {
      if (!(name in given)) variables[name] = value;
    };
    const setProxy = (name: string, value: string) => {
      if (value === "" || name in given || name.toUpperCase() in given) return;
      variables[name] = value;
      variables[name.toUpperCase()] = value;
    };
    if (certificates !== "") {
      // A guest may have rebuilt the store or added an authority of its own.
      if (this.#stores() !== this.#seen) this.#write();
      for (const name of BUNDLE_VARIABLES) set(name, this.#bundle);
      set("NODE_EXTRA_CA_CERTS", this.#own);
    }
    setProxy("http_proxy", httpProxy);
    setProxy("https_proxy", httpsProxy);
    if (httpProxy !== "" || httpsProxy !== "") setProxy("no_proxy", [noProxy, ...OWN_HOSTS].filter((host) => host !== "").join(","));
    return variables;
  }

  get #bundle(): string {
    return join(this.#paths.dir, "ca-bundle.crt");
  }

  /** The site's authorities alone. */
  get #own(): string {
    return join(this.#paths.dir, "site-ca.crt");
  }

  #write(): void {
    const { certificates } = this.#site;
    const stores = this.#readStores();
    for (const { path, text, mode } of stores) {
      if (!this.#paths.stores.includes(path)) continue;
      const wanted = withSiteCertificates(text, certificates);
      if (wanted !== text) attempt(path, () => replaceFile(path, wanted, mode));
    }
    if (certificates === "") rmSync(this.#paths.dir, { recursive: true, force: true });
    else {
      const [image] = stores.map(({ text }) => withoutSiteCertificates(text)).filter((text) => text.includes("-----BEGIN "));
      attempt(this.#paths.dir, () => {
        mkdirSync(this.#paths.dir, { recursive: true, mode: 0o755 });
        replaceFile(this.#own, withSiteCertificates("", certificates), 0o644);
        replaceFile(this.#bundle, withSiteCertificates(image ?? ownAuthorities(), certificates), 0o644);
      });
    }
    this.#seen = this.#stores();
  }

  /** The stores of the image, each once, also if several names lead to it. */
  #readStores(): Store[] {
    this.#real = [...new Set(this.#paths.stores.flatMap((path) => realPath(path) ?? []))];
    return this.#real.flatMap((path) => {
      const about = statSync(path);
      if (!about.isFile() || about.size > MAX_STORE_BYTES) return [];
      return [{ path, text: readFileSync(path, "latin1"), mode: about.mode & 0o777 }];
    });
  }

  /** Every process start waits for this: a look at each name that an image may have costs gVisor milliseconds. */
  #stores(): string {
    const looked = this.#real.length > 0 ? this.#real : this.#paths.stores;
    return looked.map((path) => identityOf(path)).join(" ");
  }
}

/** The authorities that Node.js brings along, for an image without a store. */
function ownAuthorities(): string {
  return process.getBuiltinModule("node:tls").rootCertificates.join("\n");
}

/** Renames a new file into place, so that no program reads half of it. */
function replaceFile(path: string, text: string, mode: number): void {
  const next = `${path}.skerry`;
  rmSync(next, { force: true });
  writeFileSync(next, text, { encoding: "latin1", mode, flag: "wx" });
  renameSync(next, path);
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function identityOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino}:${size}:${mtimeMs}`;
  } catch {
    return "";
  }
}

function attempt(what: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    stderrLogger(`the site's certificates could not be written to ${what}`, asError(error));
  }
}
