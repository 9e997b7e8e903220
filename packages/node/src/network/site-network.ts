// Decides which sandboxes are told how the operator's site reaches the internet. The settings are in no layer and in no record. A sandbox
// gets them when it boots, and again when it comes from an image, because the operator may have changed them since. A sandbox with header rules
// is told of its own certificate authority in the same way.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Secret } from "@skerry/base";
import { NO_SITE, type SiteNetwork, TRUST_STORES, withSiteCertificates } from "@skerry/wire";
import type { NodeConfig } from "../config.ts";
import type { ImageRecord } from "../records/image-record.ts";

const NONE = new Secret(NO_SITE);

type Sited = Pick<NodeConfig, "site">;

export interface SiteOf {
  readonly image: Pick<ImageRecord, "kind"> | undefined;
  readonly isRestored: boolean;
  /** PEM of the sandbox's own authority; "" for none. */
  readonly authority: string;
}

/** The settings for a sandbox that boots from layers, comes from `image`, or is restored with the memory of `image`. */
export function siteFor({ site }: Sited, { image, isRestored, authority }: SiteOf): Secret<SiteNetwork> | undefined {
  if (authority !== "") return withAuthority(site, authority);
  if (!image) return site;
  // Its agent was told before the image was taken. The settings are part of the image's key.
  if (image.kind === "template" && isRestored) return undefined;
  return site ?? NONE;
}

/** The settings for a sandbox that runs, whatever it knows. */
export function siteNow({ site }: Sited, authority: string): Secret<SiteNetwork> {
  return authority === "" ? (site ?? NONE) : withAuthority(site, authority);
}

function withAuthority(site: Secret<SiteNetwork> | undefined, authority: string): Secret<SiteNetwork> {
  const known = (site ?? NONE).reveal();
  const certificates = [known.certificates.trimEnd(), authority].filter((pem) => pem !== "").join("\n");
  return new Secret({ ...known, certificates });
}

/** Changes with the settings; "" when there are none. */
export function siteKey({ site }: Sited): string {
  return site === undefined ? "" : createHash("sha256").update(JSON.stringify(site.reveal())).digest("hex");
}

/**
 * The variables with which programs of the host itself, such as the one that pulls images, reach the internet. Writes the bundle of
 * authorities that they name: those of the host and of the site.
 */
export function hostVariables({ site, dir }: Pick<NodeConfig, "site" | "dir">): Record<string, string> {
  if (!site) return {};
  const { certificates, httpProxy, httpsProxy, noProxy } = site.reveal();
  const proxies = Object.entries({ http_proxy: httpProxy, https_proxy: httpsProxy, no_proxy: noProxy }).filter(([, url]) => url !== "");
  const variables = Object.fromEntries(proxies.flatMap(([name, url]) => [name, name.toUpperCase()].map((spelling) => [spelling, url])));
  if (certificates === "") return variables;
  const bundle = join(dir, "site-bundle.crt");
  writeFileSync(bundle, withSiteCertificates(hostAuthorities(), certificates), { mode: 0o600 });
  return { ...variables, SSL_CERT_FILE: bundle, CURL_CA_BUNDLE: bundle };
}

function hostAuthorities(): string {
  for (const store of TRUST_STORES) {
    try {
      return readFileSync(store, "latin1");
    } catch {
      // This distribution keeps its authorities elsewhere, or has none.
    }
  }
  return "";
}
