import { join } from "node:path";
import type { DataFolder } from "./data-folder.ts";

/** The files of the data folder's own certificate authority. */
export interface LocalTlsFiles {
  readonly dir: string;
  /** Certificate of the authority, which clients must trust. */
  readonly ca: string;
  readonly caKey: string;
  /** The authorities of this host and our own. For programs that take one file with all authorities. */
  readonly bundle: string;
  readonly cert: string;
  readonly key: string;
}

export function localTlsFiles({ tlsDir: dir }: DataFolder): LocalTlsFiles {
  return {
    dir,
    ca: join(dir, "ca.pem"),
    caKey: join(dir, "ca-key.pem"),
    bundle: join(dir, "bundle.pem"),
    cert: join(dir, "cert.pem"),
    key: join(dir, "key.pem"),
  };
}

/** The files of a certificate that comes from an ACME authority. Only root can read them. */
export interface AcmeFiles {
  readonly dir: string;
  /** The certificate, those of intermediate authorities, and the key: one file, so that they always belong together. */
  readonly certificate: string;
  readonly accountKey: string;
  readonly state: string;
}

export function acmeFiles({ tlsDir }: DataFolder): AcmeFiles {
  const dir = join(tlsDir, "acme");
  return { dir, certificate: join(dir, "certificate.pem"), accountKey: join(dir, "account-key.pem"), state: join(dir, "state.json") };
}

/** Common name of the certificate that serves until the authority has signed one. */
export const WAITING_NAME = "Skerry waits for a certificate";
