// Obtains the certificate of the TLS listener, and renews it after two thirds of its life. The edge notices the new file by itself.

import { X509Certificate } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { asError, type Logger, SubprocessError } from "@skerry/base";
import { type AcmeSettings, acmeName } from "../../folder/acme-settings.ts";
import type { DataFolder } from "../../folder/data-folder.ts";
import { writeTextFile } from "../../folder/json-file.ts";
import { type AcmeFiles, acmeFiles, WAITING_NAME } from "../../folder/tls-files.ts";
import { makeCertificate } from "../openssl.ts";
import { type AcmeNetwork, certificateOf, orderCertificate } from "./order.ts";
import { changeAcmeState, readAcmeState } from "./state.ts";

const MINUTE_MS = 60_000;
/** Pause after the first failure. It triples up to the maximum: authorities allow five failures an hour. */
const TIMING: AcmeTiming = { firstRetryMs: 2 * MINUTE_MS, afterStartMs: MINUTE_MS };
const MOST_RETRY_MS = 360 * MINUTE_MS;
const ATTEMPT_MS = 30 * MINUTE_MS;
/** Timers of Node.js take 24 days. */
const LOOK_MS = 60 * MINUTE_MS;

export interface AcmeTiming {
  readonly firstRetryMs: number;
  /** Least pause between the last failure and the first order of a process, whose operator may have mended the cause. */
  readonly afterStartMs: number;
}

export interface KeepCertificateOptions {
  readonly folder: DataFolder;
  readonly settings: AcmeSettings;
  /** May have a port. */
  readonly domain: string;
  readonly network: AcmeNetwork;
  readonly logger: Logger;
  readonly timing?: AcmeTiming;
}

/**
 * Returns when the file has a certificate, which is one that nobody trusts until the authority has signed one. Works until disposed of.
 * One process of a data folder calls it.
 */
export async function keepAcmeCertificate(options: KeepCertificateOptions): Promise<AsyncDisposable> {
  const { folder, settings, domain, logger, timing = TIMING } = options;
  const files = acmeFiles(folder);
  const name = acmeName(domain);
  await mkdir(files.dir, { recursive: true, mode: 0o700 });
  // What a process that was killed had begun to write.
  const kept = new Set([files.certificate, files.accountKey, files.state]);
  for (const entry of await readdir(files.dir)) {
    const path = join(files.dir, entry);
    if (!kept.has(path)) await rm(path, { recursive: true, force: true });
  }
  if (!(await readCertificate(files.certificate))) await writeWaiting(files.dir, files.certificate);
  const stop = new AbortController();
  const work = async () => {
    let isFirst = true;
    while (!stop.signal.aborted) {
      const waitMs = await untilNext(files, certificateOf(settings, name), { isFirst, timing });
      if (waitMs > 0) {
        await pause(Math.min(waitMs, LOOK_MS), stop.signal);
      } else {
        isFirst = false;
        await attempt(options, name, stop.signal);
      }
    }
  };
  const certificate = await readCertificate(files.certificate);
  if (isWaiting(certificate))
    logger.warn({ directory: settings.directory, names: [name, `*.${name}`] }, "waiting for a certificate: until then, clients refuse TLS");
  const working = work().catch((err) => logger.error({ err }, "the certificate is not renewed any more: restart the platform"));
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the platform stops"));
      await working;
    },
  };
}

const isWaiting = (certificate: X509Certificate | undefined) => certificate?.subject === `CN=${WAITING_NAME}`;

/** Milliseconds until the next order. */
async function untilNext(files: AcmeFiles, wanted: string, { isFirst, timing }: { isFirst: boolean; timing: AcmeTiming }): Promise<number> {
  const state = await readAcmeState(files.state);
  const { firstRetryMs, afterStartMs } = timing;
  const now = Date.now();
  const { failures = 0, attemptAt = 0 } = state;
  const certificate = await readCertificate(files.certificate);
  const due = certificate && !isWaiting(certificate) && state.certificateOf === wanted ? renewalTime(certificate) : 0;
  if (due > now || failures === 0) return due - now;
  const usual = Math.min(firstRetryMs * 3 ** (failures - 1), MOST_RETRY_MS);
  // A clock that was set back does not make it wait longer.
  return Math.min(attemptAt + (isFirst ? afterStartMs : usual) - now, usual);
}

/** After two thirds of the certificate's life, or up to 3 percent of it earlier, so that not all platforms come at the same time. */
export function renewalTime(certificate: X509Certificate): number {
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  const jitter = Number.parseInt(certificate.fingerprint256.slice(0, 2), 16) / 256;
  return from + (to - from) * (2 / 3 - 0.03 * jitter);
}

async function attempt({ folder, settings, network, logger }: KeepCertificateOptions, name: string, stop: AbortSignal): Promise<void> {
  const files = acmeFiles(folder);
  const signal = AbortSignal.any([stop, AbortSignal.timeout(ATTEMPT_MS)]);
  const { failures = 0 } = await readAcmeState(files.state);
  // Counted before it begins: an attempt that ends in a crash is one that failed.
  await changeAcmeState(files.state, { failures: failures + 1, attemptAt: Date.now() });
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  aborted.catch(() => {});
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    logger.info({ directory: settings.directory, name }, "ordering a certificate");
    const order = orderCertificate({ files, settings, name, network, logger, signal });
    order.catch(() => {});
    await Promise.race([order, aborted]);
    logger.info({ valid_to: (await readCertificate(files.certificate))?.validToDate }, "the authority has signed a certificate");
  } catch (error) {
    // An attempt that was interrupted says nothing about the next one.
    if (stop.aborted) return await changeAcmeState(files.state, { failures });
    const why = explain(asError(error), settings);
    await changeAcmeState(files.state, { error: why });
    logger.error({ err: error, attempts: failures + 1 }, `no certificate: ${why}`);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Says what to do about the failure. */
export function explain(error: Error, { directory, hook }: AcmeSettings): string {
  const { message } = error;
  if (error instanceof SubprocessError) return `the hook failed (${message}). Run ${hook} by hand and mend it`;
  if (/rate.?limit|too many (certificates|failed|requests|new)/i.test(message))
    return `the authority's rate limit is reached (${message}). Wait, or try the settings with letsencrypt-staging`;
  if (
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|timeout of|EHOSTUNREACH|ENETUNREACH/.test(
      `${message} ${"code" in error ? error.code : ""}`,
    )
  )
    return `${directory} can't be reached (${message}). Check the address, the proxy and the firewall`;
  if (/certificate|self.signed|issuer/i.test(message) && /CERT|SIGNATURE|SELF_SIGNED/.test(`${"code" in error ? error.code : ""}`))
    return `${directory} has a certificate that this host does not trust (${message}). Name its authority in SKERRY_CA_FILE`;
  if (/TXT|dns|challenge|unauthorized|NXDOMAIN/i.test(message))
    return `the authority did not find the DNS record (${message}). The hook must return only when all name servers have it`;
  return message;
}

export async function readCertificate(path: string): Promise<X509Certificate | undefined> {
  return await readFile(path)
    .then((pem) => new X509Certificate(pem))
    .catch(() => undefined);
}

async function writeWaiting(dir: string, path: string): Promise<void> {
  const made = await mkdtemp(join(dir, ".new-"));
  try {
    await makeCertificate({ dir: made, commonName: WAITING_NAME, days: 3650, extensions: { basicConstraints: "critical,CA:FALSE" } });
    const [cert, key] = await Promise.all(["cert.pem", "key.pem"].map((file) => readFile(join(made, file), "utf8")));
    await writeTextFile(path, `${cert}${key}`, 0o600);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms).unref();
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise.finally(() => clearTimeout(timer));
}
