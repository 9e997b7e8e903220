import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { siteNetworkOf } from "@skerry/setup/site-network";
import { expect, it } from "vitest";
import { parseServeConfig, sandboxOriginOf } from "./config.ts";

it.each([
  ["127.0.0.1", "http://127.0.0.1:4682"],
  ["::1", "http://[::1]:4682"],
  ["machine.example", "http://machine.example:4682"],
])("a node that listens on %s is reached at %s", (listen, url) => {
  expect(parseServeConfig({ SKERRY_LISTEN: listen }).nodeUrl).toBe(url);
});

it.each(["0.0.0.0", "::"])("a node that listens on %s needs an address for edges", (listen) => {
  const split = { SKERRY_LISTEN: listen, SKERRY_ROLES: "api,node" };
  expect(() => parseServeConfig(split)).toThrow("SKERRY_NODE_URL must be the address at which edges reach this node");
  const url = "http://10.0.0.7:4682";
  expect(parseServeConfig({ ...split, SKERRY_NODE_URL: url }).nodeUrl).toBe(url);
  expect(parseServeConfig({ SKERRY_LISTEN: listen }).roles.size).toBe(3);
});

it.each(["SKERRY_NODE_URL", "SKERRY_CONTROL_URL", "SKERRY_NODES"])("%s takes only HTTP addresses", (name) => {
  for (const url of ["10.0.0.7:4682", "ftp://10.0.0.7", "http://"]) expect(() => parseServeConfig({ [name]: url })).toThrow(`not "${url}"`);
});

it("limits the requests per second of a team unless told not to", () => {
  const limitsOf = ({ maxTeamConnections, maxTeamRequestsPerSecond }: ReturnType<typeof parseServeConfig>) => [
    maxTeamConnections,
    maxTeamRequestsPerSecond,
  ];
  expect(limitsOf(parseServeConfig({}))).toEqual([0, 4000]);
  expect(limitsOf(parseServeConfig({ SKERRY_MAX_TEAM_CONNECTIONS: "7", SKERRY_MAX_TEAM_REQUESTS_PER_SECOND: "0" }))).toEqual([7, 0]);
});

it("limits the requests per second of a sandbox unless told not to", () => {
  const limitOf = (env: Record<string, string>) => parseServeConfig(env).maxSandboxRequestsPerSecond;
  expect([limitOf({}), limitOf({ SKERRY_MAX_SANDBOX_REQUESTS_PER_SECOND: "0" })]).toEqual([2000, 0]);
  expect(() => limitOf({ SKERRY_MAX_SANDBOX_REQUESTS_PER_SECOND: "-1" })).toThrow("SKERRY_MAX_SANDBOX_REQUESTS_PER_SECOND");
});

it("reads the former name of the setting that limits disks", () => {
  expect(parseServeConfig({ SKERRY_DISK_LIMIT: "image" }).diskLimit).toBe("file");
  expect(parseServeConfig({ SKERRY_DISK_LIMIT: "file" }).diskLimit).toBe("file");
});

it.each(["gate.corp:3128", "http://gate.corp", "socks5://gate.corp:1080", "http://[fd00::1]:3128", "http://127.0.0.1:3128"])(
  "refuses %s as a proxy, without a word of it: it may contain a password",
  (url) => {
    const read = () => parseServeConfig({ SKERRY_HTTPS_PROXY: url });
    expect(read).toThrow("SKERRY_HTTPS_PROXY takes");
    expect(read).not.toThrow(url);
  },
);

it("reads proxies and their exceptions", () => {
  const { site } = parseServeConfig({ SKERRY_HTTP_PROXY: "http://u:p@proxy.example:80", SKERRY_NO_PROXY: ".corp.example,10.0.0.0/8" });
  expect(site.httpProxy?.reveal()).toBe("http://u:p@proxy.example:80");
  expect(JSON.stringify(site)).not.toContain("u:p");
  expect(siteNetworkOf(site)?.reveal()).toMatchObject({ certificates: "", noProxy: ".corp.example,10.0.0.0/8" });
  expect(siteNetworkOf(parseServeConfig({}).site)).toBeUndefined();
});

it("takes certificates from a file, and nothing else that is in it", () => {
  const dir = mkdtempSync(join(tmpdir(), "skerry-ca-"));
  const [first = "", second = ""] = rootCertificates;
  const read = (text: string) => {
    writeFileSync(join(dir, "ca.pem"), text);
    return siteNetworkOf(parseServeConfig({ SKERRY_CA_FILE: join(dir, "ca.pem") }).site)?.reveal().certificates;
  };
  try {
    expect(read(`# of the company\r\n${first}\n\nsome words\n${second}`)).toBe(`${first}\n${second}\n`);
    expect(() => read("no certificate")).toThrow("contains no certificate in PEM format");
    expect(() => read("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")).toThrow("something else than a certificate");
    expect(() => read(`${first}\n-----BEGIN EC PRIVATE KEY-----\n`)).toThrow("contains a private key, which no sandbox may get");
    rmSync(join(dir, "ca.pem"));
    expect(() => siteNetworkOf(parseServeConfig({ SKERRY_CA_FILE: join(dir, "ca.pem") }).site)).toThrow("can't be read");
  } finally {
    rmSync(dir, { recursive: true });
  }
});

it("a certificate turns TLS on, with its key in the same file or in another", () => {
  expect(parseServeConfig({ SKERRY_TLS_PORT: "443" }).tls).toBeUndefined();
  expect(parseServeConfig({ SKERRY_TLS_CERT: "/both.pem" }).tls).toEqual({ port: 4443, certFile: "/both.pem", keyFile: "/both.pem" });
  expect(() => parseServeConfig({ SKERRY_TLS_KEY: "/key.pem" })).toThrow("SKERRY_TLS_KEY needs SKERRY_TLS_CERT");
  for (const url of ["https://10.0.0.5:4680", "10.0.0.5:4680", "http://10.0.0.5/api"]) {
    expect(() => parseServeConfig({ SKERRY_EDGE_API_URL: url })).toThrow(`not "${url}"`);
  }
});

it("takes encryption keys from one place, and does not show them", () => {
  const both = { SKERRY_ENCRYPTION_KEYS: "k1", SKERRY_ENCRYPTION_KEYS_FILE: "/run/keys" };
  expect(() => parseServeConfig(both)).toThrow("exclude each other");
  expect(JSON.stringify(parseServeConfig({ SKERRY_ENCRYPTION_KEYS: "hidden" }))).not.toContain("hidden");
});

it.each([
  [{}, "http", "localhost:4681"],
  [{ SKERRY_DOMAIN: "one.example" }, "http", "one.example"],
  [{ SKERRY_DOMAIN: "one.example", SKERRY_ADVERTISE_DOMAIN: "two.example" }, "http", "two.example"],
  [{ SKERRY_DOMAIN: "one.example", SKERRY_API_URL: "https://api.one.example" }, "https", "one.example"],
  [{ SKERRY_DOMAIN: "one.example:4443", SKERRY_TLS_CERT: "/cert.pem" }, "https", "one.example:4443"],
])("with %o, links to sandboxes begin with %s and lead to %s", (env, scheme, domain) => {
  expect(sandboxOriginOf(parseServeConfig(env))).toEqual({ scheme, domain });
});

it("refuses a host of the path form that has another meaning already", () => {
  const domain = { SKERRY_DOMAIN: "one.example:4681" };
  for (const name of ["one.example", "ONE.example.:80", "api.one.example", "3000-iabc.one.example"]) {
    expect(() => parseServeConfig({ ...domain, SKERRY_PATH_HOST: name })).toThrow("SKERRY_PATH_HOST must be a name of its own");
  }
  for (const name of ["http://paths.example", "a b", "paths.example/", "paths.example:0", "x@paths.example", "[::1"]) {
    expect(() => parseServeConfig({ ...domain, SKERRY_PATH_HOST: name })).toThrow("SKERRY_PATH_HOST takes a host name");
  }
  for (const pathHost of ["paths.one.example", "paths.example:8443", "192.0.2.1", "[2001:db8::1]:80"]) {
    const config = parseServeConfig({ ...domain, SKERRY_PATH_HOST: pathHost });
    expect(sandboxOriginOf(config)).toEqual({ scheme: "http", domain: "one.example:4681", pathHost });
  }
});
