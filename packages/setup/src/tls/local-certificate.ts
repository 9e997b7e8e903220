// The certificate authority of a data folder, and the certificate of the TLS listener that it signs. For development: a client trusts the
// authority because its user says so.
//
// The authority may sign only names of its own domain and of this host, so that a stolen key is worth nothing elsewhere.

import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import type { DataFolder } from "../folder/data-folder.ts";
import { type LocalTlsFiles, localTlsFiles } from "../folder/tls-files.ts";
import { OperatorError } from "../operator-error.ts";
import { makeCertificate } from "./openssl.ts";

const DAY_MS = 86_400_000;
/** Lifetimes in days, and the rest of them at which a certificate is made again. */
const AUTHORITY = { days: 3650, renewDays: 365 };
const CERTIFICATE = { days: 90, renewDays: 30 };

const SYSTEM_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
const HOST_NAME = /^(?=.{1,200}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;

export interface LocalCertificate {
  readonly files: LocalTlsFiles;
  readonly validTo: Date;
  /** What was made now. A new authority must be trusted anew by clients. */
  readonly made: "authority" | "certificate" | "nothing";
}

/**
 * Makes the authority and the certificate of a domain, or what of them is missing, damaged, for another domain or due for renewal.
 * `domain` may have a port. Needs the set-up lock.
 */
export async function ensureLocalCertificate(folder: DataFolder, domain: string, now = Date.now()): Promise<LocalCertificate> {
  const name = nameIn(domain);
  const files = localTlsFiles(folder);
  await mkdir(files.dir, { recursive: true, mode: 0o711 });
  await chmod(files.dir, 0o711);
  let made: LocalCertificate["made"] = "nothing";
  let authority = await readPair(files.ca, files.caKey);
  if (!authority || authority.subjectAltName !== `DNS:${name}` || !lasts(authority, AUTHORITY.renewDays, now)) {
    await makeAuthority(files, name);
    authority = await readPair(files.ca, files.caKey);
    made = "authority";
  }
  let certificate = await readPair(files.cert, files.key);
  if (!certificate || !authority || !isFor(certificate, authority, name) || !lasts(certificate, CERTIFICATE.renewDays, now)) {
    await makeServerCertificate(files, name);
    certificate = await readPair(files.cert, files.key);
    if (made === "nothing") made = "certificate";
  }
  if (!certificate) throw new OperatorError(`openssl made no usable certificate in ${files.dir}`);
  await writeBundle(files);
  return { files, validTo: certificate.validToDate, made };
}

/** Returns the host name of a domain. Throws if clients would not accept a wildcard certificate for it. */
function nameIn(domain: string): string {
  const name = domain.split(":", 1)[0]?.toLowerCase() ?? "";
  if (HOST_NAME.test(name) && isIP(name) === 0) return name;
  throw new OperatorError(`a certificate for names below "${name}" would not work: clients need a domain with a dot, and not an address`, {
    exit: "usage",
    hints: ["Choose another domain, such as --domain skerry.localhost:4443."],
  });
}

function makeAuthority(files: LocalTlsFiles, name: string): Promise<void> {
  const permitted = [`DNS:${name}`, "DNS:localhost", "IP:127.0.0.0/255.0.0.0", `IP:::1/${Array(8).fill("ffff").join(":")}`];
  return replacePair(files, { cert: files.ca, key: files.caKey }, (dir) =>
    makeCertificate({
      dir,
      // Different for each authority, because clients find authorities by name.
      commonName: `Skerry local CA ${randomBytes(4).toString("hex")}`,
      days: AUTHORITY.days,
      extensions: {
        basicConstraints: "critical,CA:TRUE,pathlen:0",
        keyUsage: "critical,keyCertSign,cRLSign",
        subjectKeyIdentifier: "hash",
        // Says which domain the authority is for.
        subjectAltName: `DNS:${name}`,
        nameConstraints: `critical,${permitted.map((one) => `permitted;${one}`).join(",")}`,
      },
    }),
  );
}

const namesOf = (name: string) => [`DNS:*.${name}`, `DNS:${name}`, "DNS:localhost", "IP:127.0.0.1", "IP:::1"];

function makeServerCertificate(files: LocalTlsFiles, name: string): Promise<void> {
  return replacePair(files, { cert: files.cert, key: files.key }, (dir) =>
    makeCertificate({
      dir,
      commonName: "Skerry",
      days: CERTIFICATE.days,
      extensions: {
        basicConstraints: "critical,CA:FALSE",
        keyUsage: "critical,digitalSignature",
        extendedKeyUsage: "serverAuth",
        subjectKeyIdentifier: "hash",
        authorityKeyIdentifier: "keyid",
        subjectAltName: namesOf(name).join(","),
      },
      signer: { cert: files.ca, key: files.caKey },
    }),
  );
}

/** After a crash between the two renames, the pair does not match and is made again. */
async function replacePair(files: LocalTlsFiles, to: { cert: string; key: string }, make: (dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(files.dir, ".new-"));
  try {
    await make(dir);
    await rename(join(dir, "key.pem"), to.key);
    await rename(join(dir, "cert.pem"), to.cert);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Returns the certificate, or undefined if it or its key is missing or damaged, or they do not belong together. */
async function readPair(certFile: string, keyFile: string): Promise<X509Certificate | undefined> {
  try {
    const certificate = new X509Certificate(await readFile(certFile));
    if (!certificate.checkPrivateKey(createPrivateKey(await readFile(keyFile)))) return undefined;
    await chmod(keyFile, 0o600);
    return certificate;
  } catch {
    return undefined;
  }
}

const lasts = (certificate: X509Certificate, days: number, now: number) => certificate.validToDate.getTime() - now > days * DAY_MS;

function isFor(certificate: X509Certificate, authority: X509Certificate, name: string): boolean {
  const isSigned = certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
  return isSigned && certificate.checkHost(`x.${name}`) !== undefined && certificate.checkHost(name) !== undefined;
}

/** Written again whenever the host's authorities have changed. */
async function writeBundle(files: LocalTlsFiles): Promise<void> {
  const system = await readFile(SYSTEM_BUNDLE, "utf8").catch(() => rootCertificates.join("\n"));
  const text = `${system.trimEnd()}\n${await readFile(files.ca, "utf8")}`;
  if ((await readFile(files.bundle, "utf8").catch(() => undefined)) === text) return;
  const staged = `${files.bundle}.${randomBytes(4).toString("hex")}`;
  await writeFile(staged, text, { mode: 0o644 });
  await rename(staged, files.bundle);
}
