import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { ensureLocalCertificate, type Steps } from "@skerry/setup";
import { type DataFolder, OperatorError, type PlatformSettings } from "@skerry/setup/folder";

interface Options {
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly steps: Steps;
}

/** Makes the certificate of the TLS listener, or checks the given one. A running platform is not touched. */
export async function prepareCertificate({ folder, settings, steps }: Options): Promise<void> {
  const { tls, domain } = settings;
  if (!tls) return;
  if (tls.certFile !== undefined) {
    const [certFile, keyFile = certFile] = [tls.certFile, tls.keyFile];
    const describe = (validTo: Date) => `${certFile}, ${until(validTo)}`;
    const given = async () => {
      const certificate = await readGiven(certFile, keyFile);
      const name = domain.split(":", 1)[0] ?? "";
      if (certificate.checkHost(`x.${name}`) === undefined)
        steps.warn(`The certificate ${certFile} is not for *.${name}: clients refuse it.`);
      return certificate.validToDate;
    };
    await steps.run("TLS certificate", given, describe);
    return;
  }
  const { made } = await steps.run(
    "TLS certificate",
    () => ensureLocalCertificate(folder, domain),
    ({ made, validTo, files }) => (made === "nothing" ? until(validTo) : `made a new ${made} in ${files.dir}, ${until(validTo)}`),
  );
  if (made === "authority") steps.note('Clients that know another authority of this folder need the new one: eval "$(./skerry env)".');
}

const until = (validTo: Date) => `valid until ${validTo.toISOString().slice(0, 10)}`;

async function readGiven(certFile: string, keyFile: string): Promise<X509Certificate> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    createSecureContext({ cert, key });
    return new X509Certificate(cert);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new OperatorError(`the certificate ${certFile} with the key ${keyFile} can't be used: ${why}`, {
      hints: ["Give a certificate and its key, in PEM format: --tls-cert FILE --tls-key FILE."],
      cause,
    });
  }
}
