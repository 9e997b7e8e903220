import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { runCommand } from "@skerry/base";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type DataFolder, dataFolder } from "../folder/data-folder.ts";
import { localTlsFiles } from "../folder/tls-files.ts";
import { ensureLocalCertificate } from "./local-certificate.ts";
import { makeCertificate } from "./openssl.ts";

const DAY_MS = 86_400_000;
let folder: DataFolder;
beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), "skerry-tls-")));
});
afterEach(() => rmSync(folder.root, { recursive: true }));

const read = (path: string) => readFileSync(path, "utf8");
const verify = (file: string) => runCommand("openssl", ["verify", "-x509_strict", "-CAfile", localTlsFiles(folder).ca, file]);

test("the authority signs a certificate for the domain, names below it and this host", async () => {
  const { files, made } = await ensureLocalCertificate(folder, "skerry.localhost:4443");
  expect(made).toBe("authority");
  await verify(files.cert);
  const certificate = new X509Certificate(read(files.cert));
  for (const name of ["api.skerry.localhost", "8000-iabc.skerry.localhost", "skerry.localhost", "localhost"]) {
    expect(certificate.checkHost(name), name).toBeDefined();
  }
  expect(certificate.checkHost("a.b.skerry.localhost")).toBeUndefined();
  expect(certificate.checkIP("127.0.0.1")).toBeDefined();
  expect([files.key, files.caKey].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600]);
  const bundle = read(files.bundle);
  expect(bundle.endsWith(read(files.ca))).toBe(true);
  expect(bundle.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(Math.min(50, rootCertificates.length));
});

test("the authority is worth nothing for other names", async () => {
  const { files } = await ensureLocalCertificate(folder, "skerry.localhost");
  const signer = { cert: files.ca, key: files.caKey };
  const extensions = (names: string) => ({ basicConstraints: "CA:FALSE", authorityKeyIdentifier: "keyid", subjectAltName: names });
  for (const [names, message] of [
    ["DNS:example.com", /permitted subtree violation/],
    ["DNS:x.localhost.example.com", /permitted subtree violation/],
    ["IP:10.0.0.1", /permitted subtree violation/],
  ] as const) {
    await makeCertificate({ dir: folder.root, commonName: "Skerry", days: 9, extensions: extensions(names), signer });
    await expect(verify(join(folder.root, "cert.pem")), names).rejects.toThrow(message);
  }
});

test("what is good is kept; what is old, damaged or for another domain is made again", async () => {
  const now = Date.now();
  const ensure = async (domain: string, days = 0) => (await ensureLocalCertificate(folder, domain, now + days * DAY_MS)).made;
  const files = localTlsFiles(folder);
  expect(await ensure("boxes.test")).toBe("authority");
  const ca = read(files.ca);
  expect(await ensure("boxes.test:443", 59)).toBe("nothing");
  expect(await ensure("BOXES.test", 61)).toBe("certificate");
  truncateSync(files.key, 10);
  expect(await ensure("boxes.test")).toBe("certificate");
  rmSync(files.cert);
  expect(await ensure("boxes.test")).toBe("certificate");
  await verify(files.cert);
  expect(read(files.ca)).toBe(ca);
  expect(await ensure("other.test")).toBe("authority");
  await verify(files.cert);
  expect(await ensure("other.test", 3650 - 364)).toBe("authority");
  truncateSync(files.caKey, 10);
  expect(await ensure("other.test")).toBe("authority");
  await verify(files.cert);
  expect(read(files.bundle)).toContain(read(files.ca));
});

test.each(["localhost:4443", "10.0.0.1", "[::1]:4443", "a b.test", "x.test\n[extensions]", "-x.test", ""])("refuses %j", async (domain) => {
  await expect(ensureLocalCertificate(folder, domain)).rejects.toThrow(/would not work/);
});
