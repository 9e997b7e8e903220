// The certificate of the TLS listener. It is read again when its files change, and new connections then use the new one.
//
// Failure policy: a pair of files that cannot be used is logged once, and the former pair stays in use. The files are compared by
// content at fixed intervals, which also notices symbolic links that now point elsewhere, and works on every file system.

import { constants, createHash, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContext } from "node:tls";
import { asError, type Logger, PlatformError } from "@skerry/base";

const LOOK_MS = 5_000;
const DAY_MS = 86_400_000;
/** Remaining validity below which the log contains a warning. */
const SOON_MS = 7 * DAY_MS;

export interface CertificateOptions {
  /** PEM file with the certificate of the server and those of intermediate authorities. */
  readonly certFile: string;
  /** PEM file with the key. May be the same file. */
  readonly keyFile: string;
  /** Interval between two looks at the files. */
  readonly lookMs?: number;
}

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Identifies the content of both files. */
  readonly digest: string;
}

export class CertificateFiles implements Disposable {
  readonly #options: CertificateOptions;
  readonly #logger: Logger;
  readonly #timer: NodeJS.Timeout;
  #context: SecureContext;
  /** The pair, or the failure to read one, that was last dealt with. */
  #seen: string;
  #looking: Promise<void> | undefined;

  private constructor(options: CertificateOptions, logger: Logger, pair: Pair) {
    this.#options = options;
    this.#logger = logger;
    this.#context = contextOf(pair);
    this.#seen = pair.digest;
    this.#note(pair, "serving TLS");
    this.#timer = setInterval(() => this.look(), options.lookMs ?? LOOK_MS).unref();
  }

  /** Reads the files. Throws PlatformError("config_invalid") if they are not a certificate and its key. */
  static async open(options: CertificateOptions, logger: Logger): Promise<CertificateFiles> {
    try {
      return new CertificateFiles(options, logger, await readPair(options));
    } catch (error) {
      const { certFile, keyFile } = options;
      const message = `the certificate ${certFile} with the key ${keyFile} can't be used: ${asError(error).message}`;
      throw new PlatformError("config_invalid", message, { cause: asError(error) });
    }
  }

  /** For a new connection. */
  get context(): SecureContext {
    return this.#context;
  }

  /** Reads the files again now. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    let seen = "";
    try {
      const pair = await readPair(this.#options);
      seen = pair.digest;
      if (seen === this.#seen) return;
      this.#context = contextOf(pair);
      this.#note(pair, "the certificate was replaced");
    } catch (error) {
      seen ||= asError(error).message;
      if (seen !== this.#seen) this.#refuse(asError(error));
    } finally {
      this.#seen = seen;
    }
  }

  #note({ cert }: Pair, message: string): void {
    const certificate = new X509Certificate(cert);
    const facts = { serial: certificate.serialNumber, names: certificate.subjectAltName ?? "", valid_to: certificate.validToDate };
    this.#logger.info(facts, message);
    const leftMs = certificate.validToDate.getTime() - Date.now();
    if (leftMs < 0) this.#logger.error(facts, "the certificate has expired: clients refuse it");
    else if (leftMs < SOON_MS) this.#logger.warn(facts, "the certificate expires soon");
  }

  #refuse(err: Error): void {
    const { certFile, keyFile } = this.#options;
    this.#logger.error({ err, cert_file: certFile, key_file: keyFile }, "the new certificate can't be used: the former one stays in use");
  }
}

async function readPair({ certFile, keyFile }: CertificateOptions): Promise<Pair> {
  const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
  const digest = createHash("sha256").update(`${cert.length}:`).update(cert).update(key).digest("hex");
  return { cert, key, digest };
}

/** Throws if the pair is not a certificate and its key. */
function contextOf({ cert, key }: Pair): SecureContext {
  return createSecureContext({
    cert,
    key,
    minVersion: "TLSv1.2",
    // A renegotiation costs the server more than the client.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });
}
