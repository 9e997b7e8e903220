// The settings of the operator's site: proxies, and a file of certificate authorities.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIPv4 } from "node:net";
import { asError, type ConfigReader, PlatformError, Secret } from "@skerry/base";
import type { SiteNetwork } from "@skerry/wire";

export interface SiteSettings {
  readonly caFile: string | undefined;
  /** URLs, which may contain credentials. */
  readonly httpProxy: Secret | undefined;
  readonly httpsProxy: Secret | undefined;
  readonly noProxy: string | undefined;
}

/** The certificates are sent to every sandbox that boots. The store of a distribution takes 300 kB. */
const MAX_CERTIFICATES_BYTES = 1024 * 1024;

/** Reads the settings. Problems never contain the URL of a proxy, which may have a password in it. */
export function readSiteSettings(reader: ConfigReader): SiteSettings {
  const proxy = (name: string) => {
    const url = reader.secret(name);
    const problem = url && problemOf(url.reveal());
    if (problem) reader.problem(`SKERRY_${name} ${problem}`);
    return url;
  };
  const settings = {
    caFile: reader.optional("CA_FILE"),
    httpProxy: proxy("HTTP_PROXY"),
    httpsProxy: proxy("HTTPS_PROXY"),
    noProxy: reader.optional("NO_PROXY"),
  };
  if (settings.noProxy !== undefined && /[^\x21-\x7e]/.test(settings.noProxy))
    reader.problem("SKERRY_NO_PROXY takes comma-separated hosts such as .corp.example,10.0.0.0/8, without spaces");
  return settings;
}

function problemOf(text: string): string | undefined {
  const url = URL.parse(text);
  // Programs disagree on the port of a proxy without one.
  if (!url || !/^https?:$/.test(url.protocol) || !/:\d+\/?$/.test(text) || /[^\x21-\x7e]/.test(text))
    return "takes a URL with a port, such as http://proxy.example:3128";
  if (url.hostname.startsWith("[")) return "takes a host with an IPv4 address: sandboxes have no IPv6";
  if (url.hostname === "localhost" || url.hostname.startsWith("127.") || (isIPv4(url.hostname) && url.hostname.startsWith("0.")))
    return "takes an address that sandboxes can reach: on the loopback interface each sandbox finds only itself";
  return undefined;
}

/** Undefined when the site needs nothing. Throws PlatformError("config_invalid") for a file without usable certificates. */
export function siteNetworkOf({ caFile, httpProxy, httpsProxy, noProxy }: SiteSettings): Secret<SiteNetwork> | undefined {
  if (caFile === undefined && httpProxy === undefined && httpsProxy === undefined) return undefined;
  return new Secret({
    certificates: caFile === undefined ? "" : readCertificates(caFile),
    httpProxy: httpProxy?.reveal() ?? "",
    httpsProxy: httpsProxy?.reveal() ?? "",
    noProxy: noProxy ?? "",
  });
}

/** The certificates of a PEM file, and nothing else of it: sandboxes get to see them. */
function readCertificates(path: string): string {
  const invalid = (why: string, cause?: unknown) =>
    new PlatformError("config_invalid", `SKERRY_CA_FILE: ${path} ${why}`, cause === undefined ? {} : { cause: asError(cause) });
  let text: string;
  try {
    text = readFileSync(path, "latin1");
  } catch (error) {
    throw invalid(`can't be read: ${asError(error).message}`, error);
  }
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) throw invalid("contains a private key, which no sandbox may get");
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0) throw invalid("contains no certificate in PEM format");
  for (const [index, pem] of certificates.entries()) {
    try {
      new X509Certificate(pem);
    } catch (error) {
      throw invalid(`contains something else than a certificate at position ${index + 1}`, error);
    }
  }
  const joined = `${certificates.join("\n")}\n`.replaceAll("\r", "");
  if (joined.length > MAX_CERTIFICATES_BYTES) throw invalid("is larger than 1 MiB");
  return joined;
}
