import { X509Certificate } from "node:crypto";
import { access, constants, readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { ensureLocalCertificate, type Steps } from "@skerry/setup";
import { acmeFiles, type DataFolder, OperatorError, type PlatformSettings, WAITING_NAME } from "@skerry/setup/folder";

interface Options {
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly steps: Steps;
}

/** Makes the certificate of the TLS listener, or checks the given one. A running platform is not touched. */
export async function prepareCertificate({ folder, settings, steps }: Options): Promise<void> {
  const { tls, domain } = settings;
  if (!tls) return;
  if (tls.acme) {
    const { hook, directory } = tls.acme;
    await access(hook, constants.X_OK).catch((cause) => {
      throw new OperatorError(`${hook}, the hook of --acme-hook, is not a program that can be run`, { exit: "usage", cause });
    });
    const pem = await readFile(acmeFiles(folder).certificate).catch(() => undefined);
    const hasOne = pem !== undefined && new X509Certificate(pem).subject !== `CN=${WAITING_NAME}`;
    if (!hasOne)
      steps.note(`The platform starts without a certificate and orders one from ${directory}. See ./skerry doctor for the result.`);
    return;
  }
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
