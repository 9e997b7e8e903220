// One certificate from an ACME authority, with DNS-01 challenges.
//
// Failure policy: each order starts anew. What a crash leaves behind are DNS records, which are written down before the hook sets them,
// and which the next attempt removes first. The account key is on the disk before an account exists.

import { readFile } from "node:fs/promises";
import { Agent, get } from "node:https";
import { rootCertificates } from "node:tls";
import { asError, type Logger, reachCrashPoint } from "@skerry/base";
import { axios, Client, crypto } from "acme-client";
import type { AcmeSettings } from "../../folder/acme-settings.ts";
import { writeTextFile } from "../../folder/json-file.ts";
import { ensureKeyFile } from "../../folder/key-file.ts";
import type { AcmeFiles } from "../../folder/tls-files.ts";
import { callHook } from "./hook.ts";
import { type ChallengeRecord, changeAcmeState, readAcmeState } from "./state.ts";

export interface AcmeNetwork {
  /** Further authorities that the connection to the directory may have. */
  readonly caFile?: string | undefined;
  readonly proxy?: { readonly HTTPS_PROXY?: string; readonly NO_PROXY?: string } | undefined;
}

export interface OrderOptions {
  readonly files: AcmeFiles;
  readonly settings: AcmeSettings;
  /** The certificate is for this name and for all one level below. */
  readonly name: string;
  readonly network: AcmeNetwork;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Replaces the certificate's file. */
export async function orderCertificate(options: OrderOptions): Promise<void> {
  const { files, settings, name, signal } = options;
  await removeOldRecords(options);
  const client = await openAccount(options);
  signal.throwIfAborted();
  const names = [name, `*.${name}`];
  const order = await client.createOrder({ identifiers: names.map((value) => ({ type: "dns", value })) });
  try {
    await answerChallenges(options, client, await client.getAuthorizations(order));
  } finally {
    // When this process stops, the next one does it.
    if (!signal.aborted) await removeOldRecords(options);
  }
  signal.throwIfAborted();
  const [key, request] = await crypto.createCsr({ commonName: name, altNames: names }, await crypto.createPrivateEcdsaKey());
  const chain = await client.getCertificate(await client.finalizeOrder(order, request));
  signal.throwIfAborted();
  reachCrashPoint("acme.signed");
  await writeTextFile(files.certificate, `${chain.trimEnd()}\n${key}`, 0o600);
  await changeAcmeState(files.state, { certificateOf: certificateOf(settings, name), failures: 0, error: "" });
}

export const certificateOf = (settings: AcmeSettings, name: string) => `${settings.directory} ${name}`;

async function openAccount({ files, settings, network }: OrderOptions): Promise<Client> {
  const ca = network.caFile === undefined ? undefined : [...rootCertificates, await readFile(network.caFile, "utf8")];
  axios.defaults.proxy = false;
  axios.defaults.timeout = 30_000;
  // Retries are ours: the library would wait as long as the answer of the authority says.
  Object.assign((axios.defaults as { acmeSettings?: object }).acmeSettings ?? {}, { retryMaxAttempts: 0 });
  const agent = new Agent({ ...(ca && { ca }), ...(network.proxy && { proxyEnv: network.proxy }) });
  axios.defaults.httpsAgent = agent;
  await reachDirectory(settings.directory, agent);
  const made = (await crypto.createPrivateEcdsaKey()).toString().trimEnd();
  const accountKey = await ensureKeyFile(files.accountKey, () => made);
  reachCrashPoint("acme.account-key");
  const client = new Client({ directoryUrl: settings.directory, accountKey, backoffMin: 1_000, backoffMax: 30_000 });
  await client.createAccount({ termsOfServiceAgreed: true, contact: [`mailto:${settings.contact}`] });
  return client;
}

/** The library does not say why it could not connect. */
function reachDirectory(url: string, agent: Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = get(url, { agent, signal: AbortSignal.timeout(30_000) }, (response) => {
    response.resume();
    response.once("error", reject).once("end", resolve);
  });
  request.once("error", reject);
  return promise;
}

type Authorization = Awaited<ReturnType<Client["getAuthorizations"]>>[number];

async function answerChallenges(options: OrderOptions, client: Client, authorizations: readonly Authorization[]): Promise<void> {
  const { files, settings, logger, signal } = options;
  const challenges = [];
  const records: ChallengeRecord[] = [];
  for (const { identifier, status, challenges: offered } of authorizations) {
    if (status === "valid") continue;
    const challenge = offered.find(({ type }) => type === "dns-01");
    if (!challenge) throw new Error(`the authority offers no DNS-01 challenge for ${identifier.value}`);
    challenges.push(challenge);
    records.push({ name: `_acme-challenge.${identifier.value}`, value: await client.getChallengeKeyAuthorization(challenge) });
  }
  await changeAcmeState(files.state, { records });
  reachCrashPoint("acme.recorded");
  // One after the other, because both records have the same name and not every hook locks.
  for (const record of records) await callHook({ ...record, hook: settings.hook, action: "present", logger, signal });
  reachCrashPoint("acme.presented");
  for (const challenge of challenges) {
    signal.throwIfAborted();
    await client.completeChallenge(challenge);
    await client.waitForValidStatus(challenge);
  }
}

/** A record that cannot be removed is harmless, but is tried again with the next order. */
async function removeOldRecords({ files, settings, logger, signal }: OrderOptions): Promise<void> {
  const { records = [] } = await readAcmeState(files.state);
  const left: ChallengeRecord[] = [];
  for (const record of records) {
    try {
      await callHook({ ...record, hook: settings.hook, action: "cleanup", logger, signal });
    } catch (err) {
      left.push(record);
      logger.warn({ err: asError(err), name: record.name }, "the ACME hook did not remove a DNS record; the next order tries again");
    }
  }
  if (records.length > 0) await changeAcmeState(files.state, { records: left });
}
