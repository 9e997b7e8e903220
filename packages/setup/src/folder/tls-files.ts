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
