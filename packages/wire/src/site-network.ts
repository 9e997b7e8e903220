/** How the operator's site reaches the internet. The node tells the agent, and the agent tells every process of the guest. */
export interface SiteNetwork {
  /** PEM certificates of the site's authorities, which may issue certificates for any host; "" for none. */
  readonly certificates: string;
  /** URLs of proxies, possibly with credentials; "" for none. */
  readonly httpProxy: string;
  readonly httpsProxy: string;
  /** Comma-separated hosts that need no proxy. */
  readonly noProxy: string;
}

/** Removes the settings of another site, or former settings, from a sandbox that comes from an image. */
export const NO_SITE: SiteNetwork = { certificates: "", httpProxy: "", httpsProxy: "", noProxy: "" };

/** Variables that name a bundle of authorities, which replaces those that a program brings along. */
export const BUNDLE_VARIABLES = [
  // OpenSSL, Go, Ruby, Rust, and Python's ssl
  "SSL_CERT_FILE",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "AWS_CA_BUNDLE",
] as const;

const PROXY_VARIABLES = ["http_proxy", "https_proxy", "no_proxy"];

/** Every variable that processes get, for programs such as sudo that pass on a list. */
export const SITE_VARIABLES: readonly string[] = [
  ...BUNDLE_VARIABLES,
  "NODE_EXTRA_CA_CERTS",
  ...PROXY_VARIABLES.flatMap((name) => [name, name.toUpperCase()]),
];

/** The files that distributions keep trusted authorities in. Elsewhere the agent changes nothing, and a build looks for nothing. */
export const TRUST_STORES: readonly string[] = [
  // Debian, Ubuntu, Alpine, Gentoo
  "/etc/ssl/certs/ca-certificates.crt",
  // Fedora and relatives
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/pki/tls/certs/ca-bundle.crt",
  // Arch
  "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
  // openSUSE
  "/var/lib/ca-certificates/ca-bundle.pem",
  "/etc/ssl/ca-bundle.pem",
  // Alpine with LibreSSL, BSD-like images
  "/etc/ssl/cert.pem",
];

const BEGIN = "# Skerry: certificates of this site\n";
const END = "# Skerry: end of the certificates of this site\n";

/** A trust store with the site's certificates at its end, and without those that an earlier call added. Comments are legal in a store. */
export function withSiteCertificates(store: string, certificates: string): string {
  const rest = withoutSiteCertificates(store);
  if (certificates === "") return rest;
  const gap = rest === "" || rest.endsWith("\n") ? "" : "\n";
  return `${rest}${gap}${BEGIN}${certificates.trimEnd()}\n${END}`;
}

export function withoutSiteCertificates(store: string): string {
  const begin = store.indexOf(BEGIN);
  const end = store.indexOf(END, begin);
  if (begin < 0 || end < 0) return store;
  return withoutSiteCertificates(store.slice(0, begin) + store.slice(end + END.length));
}
