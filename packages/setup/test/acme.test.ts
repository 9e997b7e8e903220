// Certificates from a real ACME authority.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, spawnCommand } from "@skerry/base";
import { startPebble, type TestAuthority } from "@skerry/testkit";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { acmeFiles, dataFolder, WAITING_NAME } from "../src/folder/index.ts";
import { type KeepCertificateOptions, keepAcmeCertificate, readAcmeState } from "../src/tls/acme/index.ts";

const NAME = "boxes.example.com";
const YEAR_S = 365 * 86_400;
const POLL = { timeout: 60_000, interval: 50 };
const logger = createLogger({ name: "acme-test", level: "error" });
let authority: TestAuthority;
beforeAll(async () => {
  authority = await startPebble(YEAR_S);
});
afterAll(() => authority?.[Symbol.asyncDispose]());

function optionsFor(from: TestAuthority = authority): KeepCertificateOptions {
  const root = mkdtempSync(join(tmpdir(), "skerry-acme-data-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return {
    folder: dataFolder(root),
    settings: { directory: from.directory, contact: "ops@example.com", hook: from.hook },
    domain: `${NAME}:8443`,
    network: { caFile: from.caFile },
    logger,
    timing: { firstRetryMs: 100, afterStartMs: 0 },
  };
}

const read = (options: KeepCertificateOptions) => new X509Certificate(readFileSync(acmeFiles(options.folder).certificate));
const signed = (options: KeepCertificateOptions) =>
  vi.waitFor(() => {
    const certificate = read(options);
    expect(certificate.subject).not.toBe(`CN=${WAITING_NAME}`);
    return certificate;
  }, POLL);
/** The last order is over, with all that follows the certificate. */
const settled = (options: KeepCertificateOptions) =>
  vi.waitFor(async () => expect(await readAcmeState(acmeFiles(options.folder).state)).toMatchObject({ failures: 0, records: [] }), POLL);

test("a certificate for the domain and all names below it, which only root can read, is ordered once", async () => {
  const options = optionsFor();
  const callsBefore = authority.hookCalls().length;
  {
    await using _keeper = await keepAcmeCertificate(options);
    // The listener can start at once.
    expect(read(options).checkPrivateKey(createPrivateKey(readFileSync(acmeFiles(options.folder).certificate)))).toBe(true);
    const certificate = await signed(options);
    await settled(options);
    expect([certificate.checkHost(NAME), certificate.checkHost(`api.${NAME}`)]).toEqual([NAME, `*.${NAME}`]);
    const file = readFileSync(acmeFiles(options.folder).certificate, "utf8");
    expect(certificate.checkPrivateKey(createPrivateKey(file))).toBe(true);
    // PWD, OLDPWD, SHLVL and _ are the shell's own.
    const given = authority.hookVariables().filter((variable) => !/^(OLDPWD|PWD|SHLVL|_)$/.test(variable));
    expect(given.sort()).toEqual(["ACME_ACTION", "ACME_NAME", "ACME_VALUE", "HOME", "LANG", "PATH"]);
    // The chain.
    expect(file.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(1);
  }
  const { dir } = acmeFiles(options.folder);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  const modes = readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mode & 0o777]);
  expect(Object.fromEntries(modes)).toEqual({ "account-key.pem": 0o600, "certificate.pem": 0o600, "state.json": 0o600 });
  const calls = () => authority.hookCalls().slice(callsBefore);
  expect(calls().map(([action, name]) => `${action} ${name}`)).toEqual([
    ...Array(2).fill(`present _acme-challenge.${NAME}`),
    ...Array(2).fill(`cleanup _acme-challenge.${NAME}`),
  ]);
  expect(new Set(calls().map(([, , value]) => value)).size).toBe(2);

  const { serialNumber } = read(options);
  {
    await using _again = await keepAcmeCertificate(options);
  }
  expect(read(options).serialNumber).toBe(serialNumber);
  // For another name, there is a new order.
  await using _other = await keepAcmeCertificate({ ...options, domain: "other.example.com" });
  await vi.waitFor(() => expect(read(options).checkHost("x.other.example.com")).toBeDefined(), POLL);
});

test("a certificate is renewed before its end, and each has its own key", async () => {
  await using short = await startPebble(12);
  const options = optionsFor(short);
  await using _keeper = await keepAcmeCertificate(options);
  const first = await signed(options);
  const second = await vi.waitFor(() => {
    const now = read(options);
    expect(now.serialNumber).not.toBe(first.serialNumber);
    return now;
  }, POLL);
  expect(second.validFromDate.getTime()).toBeLessThan(first.validToDate.getTime());
  expect(second.publicKey.equals(first.publicKey)).toBe(false);
});

test.each(["acme.account-key", "acme.recorded", "acme.presented", "acme.signed"])(
  "after kill -9 at %s, the next process gets a certificate and removes the records",
  async (point) => {
    const options = optionsFor();
    const before = authority.hookCalls().length;
    const { logger: _, ...passed } = options;
    const child = spawnCommand(process.execPath, [join(import.meta.dirname, "acme-process.ts"), JSON.stringify(passed), point]);
    expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
    expect(read(options).subject).toBe(`CN=${WAITING_NAME}`);
    writeFileSync(`${acmeFiles(options.folder).certificate}.new`, "half a");
    await using _keeper = await keepAcmeCertificate(options);
    await signed(options);
    await settled(options);
    const calls = authority.hookCalls().slice(before);
    const valuesOf = (wanted: string) => new Set(calls.filter(([action]) => action === wanted).map(([, , value]) => value));
    expect([...valuesOf("present")].filter((value) => !valuesOf("cleanup").has(value))).toEqual([]);
    expect(readdirSync(acmeFiles(options.folder).dir).sort()).toEqual(["account-key.pem", "certificate.pem", "state.json"]);
  },
);

const script = (name: string, text: string) => {
  const path = join(authority.dir, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o700 });
  return path;
};
test.each<[string, () => Partial<KeepCertificateOptions["settings"]> & { caFile?: undefined }, RegExp]>([
  [
    "a hook that fails",
    () => ({ hook: script("fails", "echo the provider says no >&2; exit 3") }),
    /the hook failed .*the provider says no.*Run .*fails by hand/,
  ],
  ["a hook that does nothing", () => ({ hook: script("idle", "exit 0") }), /did not find the DNS record .*The hook must return only when/],
  [
    "a directory that is not there",
    () => ({ directory: "https://127.0.0.1:1/dir" }),
    /127\.0\.0\.1:1\/dir can't be reached .*Check the address/,
  ],
  ["a directory that nobody trusts", () => ({ caFile: undefined }), /does not trust .*SKERRY_CA_FILE/],
])("%s: the state says what to mend, and the order is tried again", async (_, change, message) => {
  const usual = optionsFor();
  const { caFile = usual.network.caFile, ...settings } = { ...change() };
  const network = "caFile" in change() ? {} : { caFile };
  const { state } = acmeFiles(usual.folder);
  {
    await using _keeper = await keepAcmeCertificate({ ...usual, settings: { ...usual.settings, ...settings }, network });
    await vi.waitFor(async () => expect((await readAcmeState(state)).failures).toBeGreaterThan(1), POLL);
    expect((await readAcmeState(state)).error).toMatch(message);
    expect(read(usual).subject).toBe(`CN=${WAITING_NAME}`);
  }
  await using _mended = await keepAcmeCertificate(usual);
  await signed(usual);
  await settled(usual);
});
