// `./skerry up --tls`, and the official SDKs with nothing but the variables of `./skerry env`.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { connect } from "node:tls";
import { createTestDataFolder, freePorts, startPebble, testCacheDir } from "@skerry/testkit";
import { itInFullRuns, runtimesFor } from "@skerry/testkit/depth";
import { startForwardProxy } from "@skerry/testkit/forward-proxy";
import { SkerryCommand, USER_ENV } from "@skerry/testkit/skerry-command";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OwnNames, ownNames } from "./tls/own-names.ts";

const PATH_HOST = "paths.skerry.localhost";
const ENV = { ...USER_ENV, SKERRY_PATH_HOST: PATH_HOST };
let data: string;
let domain: string;
let tlsPort: number;
let plain: { api: number; edge: number };
let names: OwnNames;

const skerry = (...args: string[]) => skerryWith({}, ...args);
const skerryWith = async (env: Record<string, string>, ...args: string[]) =>
  (await new SkerryCommand(data, { env: { ...ENV, ...env } }).run(...args)).stdout;

describe.each(runtimesFor("TLS"))("with TLS, on %s", (runtime) => {
  beforeAll(async () => {
    data = (await createTestDataFolder(`t-${randomBytes(6).toString("hex")}`)).root;
    names = await ownNames("skerry.localhost");
    const [api = 0, edge = 0, tls = 0] = await freePorts(3);
    plain = { api, edge };
    domain = `skerry.localhost:${tls}`;
    tlsPort = tls;
    await skerry("up", "--detach", "--runtime", runtime, "--api-port", `${api}`, "--edge-port", `${edge}`, "--tls", "--tls-port", `${tls}`);
  });
  afterAll(async () => {
    await skerry("down");
    rmSync(data, { recursive: true, force: true });
    await names?.[Symbol.asyncDispose]();
  });

  const variables = async () => JSON.parse(await skerry("env", "--json")) as Record<string, string>;

  test("clients get the domain, the key and our authority; private keys are readable by root alone", async () => {
    const files = { NODE_EXTRA_CA_CERTS: join(data, "tls/ca.pem"), SSL_CERT_FILE: join(data, "tls/bundle.pem") };
    expect(await variables()).toEqual({ E2B_API_KEY: expect.any(String), E2B_DOMAIN: domain, ...files });
    expect(await skerry("env")).toMatch(/^unset E2B_API_URL E2B_SANDBOX_URL E2B_VOLUME_API_URL\nexport E2B_API_KEY=/);
    const modes = Object.fromEntries(
      readdirSync(join(data, "tls")).map((name) => [name, (statSync(join(data, "tls", name)).mode & 0o777).toString(8)]),
    );
    expect(modes).toEqual({ "ca.pem": "644", "ca-key.pem": "600", "bundle.pem": "644", "cert.pem": "644", "key.pem": "600" });
  });

  test("the npm SDK creates, runs, transfers, and reaches ports by fetch and WebSocket", async () => {
    const env = { ...ENV, RUNTIME: runtime, ...(await variables()) };
    const { stdout } = await names.run(process.execPath, [join(import.meta.dirname, "tls/client.ts")], { env, timeoutMs: 120_000 });
    expect(stdout).toBe("all well\n");
  });

  test("both flavours of the PyPI SDK create, run, transfer, and reach ports, also private ones", async () => {
    const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
    if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
    const python = join(testCacheDir(), environment, "bin/python");
    const env = { ...ENV, RUNTIME: runtime, ...(await variables()) };
    const { stdout } = await names.run(python, [join(import.meta.dirname, "tls/client.py")], { env, timeoutMs: 120_000 });
    expect(stdout).toBe("all well\n");
  });

  test("a link opens a private sandbox on the host of the path form, which the setting names", async () => {
    const { E2B_API_KEY = "" } = await variables();
    const call = async (path: string, body: object) => {
      const headers = { "X-API-Key": E2B_API_KEY, "Content-Type": "application/json" };
      const answer = await fetch(`http://127.0.0.1:${plain.api}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      expect(answer.status).toBe(201);
      return (await answer.json()) as Record<string, string>;
    };
    const ask = (path: string, headers: Record<string, string> = {}) =>
      new Promise<{ status: number | undefined; location: string | undefined; cookie: string | undefined }>((resolve, reject) => {
        const sent = request(
          { port: plain.edge, path, agent: false, headers: { Host: PATH_HOST, ...headers } },
          ({ statusCode, headers: got }) =>
            resolve({ status: statusCode, location: got.location, cookie: got["set-cookie"]?.[0]?.split(";")[0] }),
        );
        sent.once("error", reject).end();
      });
    const { sandboxID } = await call("/v2/sandboxes", { templateID: "base", network: { allowPublicTraffic: false } });
    const { pathUrl = "" } = await call(`/sandboxes/${sandboxID}/links`, { port: 3000, expiresIn: 60 });
    const { protocol, host, pathname, search } = new URL(pathUrl);
    expect([protocol, host, pathname]).toEqual(["https:", PATH_HOST, `/s/${sandboxID}/3000/`]);
    expect((await ask(pathname)).status).toBe(403);
    const { status, location, cookie = "" } = await ask(pathname + search);
    expect([status, location]).toEqual([302, pathname]);
    // Nothing listens in the sandbox: the edge has asked its node.
    expect((await ask(pathname, { Cookie: cookie })).status).toBe(502);
  });

  test("a certificate that can't be used is refused before the platform stops", async () => {
    const { pid } = JSON.parse(await skerry("status", "--json")) as { pid: number };
    const wrong = ["--tls-cert", join(data, "tls/cert.pem"), "--tls-key", join(data, "tls/ca-key.pem")];
    await expect(skerry("restart", ...wrong)).rejects.toThrow(/can't be used: .*key values mismatch/);
    expect(JSON.parse(await skerry("status", "--json"))).toMatchObject({ pid, healthy: true, tls: `https://api.${domain}` });
  });

  test("the doctor looks at the certificate and at the names, and another up keeps the authority", async () => {
    const { findings } = JSON.parse(await skerry("doctor", "--json")) as { findings: { name: string; outcome: string; found: string }[] };
    const finding = (name: string) => findings.find((one) => one.name === name);
    expect(finding("TLS certificate")).toMatchObject({ outcome: "passed", found: expect.stringContaining("*.skerry.localhost") });
    expect(["passed", "warning"]).toContain(finding("host names")?.outcome);
    expect(await skerry("up", "--detach")).toContain("is already running");
  });

  itInFullRuns("an ACME authority behind the site's proxy signs the certificate of the running platform", async () => {
    await using authority = await startPebble(365 * 86_400);
    await using proxy = await startForwardProxy();
    const contact = ["--acme-contact", "ops@example.com", "--acme-hook", authority.hook];
    const acme = ["--acme", authority.directory, ...contact, "--domain", `boxes.example.com:${tlsPort}`];
    await expect(skerry("restart", ...acme)).rejects.toThrow(/--acme-agree is missing/);
    const env = { SKERRY_CA_FILE: authority.caFile, SKERRY_HTTPS_PROXY: proxy.url };
    await skerryWith(env, "restart", ...acme, "--acme-agree");
    const { pid } = JSON.parse(await skerry("status", "--json")) as { pid: number };
    await waitUntil("the listener has the certificate", async () => (await issuerOf("x.boxes.example.com")).startsWith("Pebble"), 60_000);
    expect(JSON.parse(await skerry("status", "--json"))).toMatchObject({ pid, healthy: true });
    expect(new Set(proxy.connected)).toEqual(new Set([new URL(authority.directory).host]));
    const { findings } = JSON.parse(await skerryWith(env, "doctor", "--json")) as { findings: { name: string; found: string }[] };
    expect(findings.find(({ name }) => name === "TLS certificate")?.found).toMatch(
      /^for \*\.boxes\.example\.com, valid until .* \(36[45] days\)$/,
    );
  });
});

async function issuerOf(servername: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port: tlsPort, servername, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { issuer } = socket.getPeerCertificate();
  socket.destroy();
  return String(issuer.CN);
}
