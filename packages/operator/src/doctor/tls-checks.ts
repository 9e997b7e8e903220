import { X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { type AcmeSettings, acmeFiles, type DataFolder, localTlsFiles, readJsonFile, WAITING_NAME } from "@skerry/setup/folder";
import { type Check, fail, pass, warn } from "./check.ts";

const DAY_MS = 86_400_000;
/** Remaining days below which a certificate is reported. The platform renews its own earlier. */
const SOON_DAYS = 14;

export const TLS_CHECKS: readonly Check[] = [
  {
    name: "TLS certificate",
    async run({ folder, settings: { tls, domain } }) {
      if (!tls) return pass("no TLS");
      const file = tls.acme ? acmeFiles(folder).certificate : (tls.certFile ?? localTlsFiles(folder).cert);
      const fix = await fixFor(folder, tls);
      const certificate = await readFile(file).then(
        (text) => new X509Certificate(text),
        () => undefined,
      );
      if (!certificate) return fail(`${file} cannot be read`, fix);
      const name = hostOf(domain);
      if (certificate.subject === `CN=${WAITING_NAME}`) return warn(`no certificate from ${tls.acme?.directory ?? "ACME"} yet`, fix);
      const until = certificate.validToDate.toISOString().slice(0, 10);
      if (certificate.checkHost(`x.${name}`) === undefined) return fail(`${file} is not for *.${name}`, fix);
      const days = (certificate.validToDate.getTime() - Date.now()) / DAY_MS;
      if (days < 0) return fail(`${file} expired on ${until}`, fix);
      return days < SOON_DAYS
        ? warn(`${file} expires on ${until}`, fix)
        : pass(`for *.${name}, valid until ${until} (${Math.floor(days)} days)`);
    },
  },
  {
    name: "host names",
    async run({ settings: { domain } }) {
      const name = `8080-doctor.${hostOf(domain)}`;
      const address = await lookup(name).then(
        (found) => found.address,
        () => undefined,
      );
      if (address !== undefined) return pass(`*.${hostOf(domain)} is ${address}`);
      const fix = /(^|\.)localhost$/.test(hostOf(domain))
        ? "Programs that use this host's C library cannot open the host names of sandboxes. Run: apt-get install --no-install-recommends libnss-myhostname"
        : `Add a DNS record for *.${hostOf(domain)} that names this host.`;
      return warn(`names below ${hostOf(domain)} do not resolve here`, fix);
    },
  },
];

async function fixFor(folder: DataFolder, tls: { readonly certFile?: string; readonly acme?: AcmeSettings }): Promise<string> {
  if (tls.acme) {
    const state = await readJsonFile<{ error?: string }>(acmeFiles(folder).state).catch(() => undefined);
    if (state?.error) return `The last order failed: ${state.error}. Another one follows by itself, and at ./skerry restart.`;
    return "The platform orders one while it runs: see ./skerry logs.";
  }
  if (tls.certFile) return "Replace the certificate and its key. The platform notices within seconds.";
  return "Run ./skerry restart, which makes a new one.";
}

const hostOf = (domain: string) => domain.split(":", 1)[0] ?? "";
