import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";

export interface NewCertificate {
  /** An existing directory that only root can enter. Gets `key.pem` and `cert.pem`. */
  readonly dir: string;
  readonly commonName: string;
  readonly days: number;
  /** X.509 extensions, in the syntax of OpenSSL's configuration files. */
  readonly extensions: Readonly<Record<string, string>>;
  /** Default: the certificate signs itself. */
  readonly signer?: { readonly cert: string; readonly key: string };
}

/** Makes a P-256 key and a certificate for it. The key is never on a command line. */
export async function makeCertificate({ dir, commonName, days, extensions, signer }: NewCertificate): Promise<void> {
  const [config, key, cert] = ["openssl.cnf", "key.pem", "cert.pem"].map((name) => join(dir, name)) as [string, string, string];
  const lines = Object.entries(extensions).map(([name, value]) => `${name} = ${value}`);
  const head = ["[req]", "distinguished_name = name", "x509_extensions = extensions", "prompt = no", "utf8 = yes"];
  await writeFile(config, [...head, "[name]", `CN = ${commonName}`, "[extensions]", ...lines, ""].join("\n"), { mode: 0o600 });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key];
  const signedBy = signer ? ["-CA", signer.cert, "-CAkey", signer.key] : [];
  await runCommand("openssl", ["req", "-x509", "-sha256", "-config", config, ...newKey, "-out", cert, "-days", String(days), ...signedBy]);
  await chmod(key, 0o600);
  await chmod(cert, 0o644);
}
