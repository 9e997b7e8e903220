import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_SITE, SITE_VARIABLES, withoutSiteCertificates } from "@skerry/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SiteAccess } from "./site-access.ts";

const certificate = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
const site = (name: string) => ({ ...NO_SITE, certificates: certificate(name) });

let root: string;
let store: string;
let access: SiteAccess;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "skerry-site-"));
  mkdirSync(join(root, "certs"));
  store = join(root, "certs/store.crt");
  access = new SiteAccess({ dir: join(root, "memory"), stores: [store, join(root, "certs/alias.pem"), join(root, "certs/none.crt")] });
});
afterEach(() => rmSync(root, { recursive: true }));

const read = (path: string) => readFileSync(path, "utf8");
const names = (path: string) => read(path).match(/^(?!-|#).+$/gm) ?? [];

it("adds the site's certificates to the image's store once, replaces them, and takes them out", () => {
  writeFileSync(store, certificate("image"), { mode: 0o640 });
  symlinkSync("store.crt", join(root, "certs/alias.pem"));
  for (const name of ["first", "first", "second"]) access.become(site(name));
  expect(names(store)).toEqual(["image", "second"]);
  expect(statSync(store).mode & 0o777).toBe(0o640);
  expect(withoutSiteCertificates(read(store))).toBe(certificate("image"));
  // A restart of the sandbox from its disk: another agent finds what the former one wrote.
  new SiteAccess({ dir: join(root, "memory"), stores: [store] }).become(NO_SITE);
  expect(read(store)).toBe(certificate("image"));
});

it("names a bundle of the image's authorities and the site's, and the site's alone for Node.js", () => {
  writeFileSync(store, certificate("image"));
  access.become(site("site"));
  const variables = access.variables({});
  for (const name of ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"])
    expect(names(variables[name] ?? "")).toEqual(["image", "site"]);
  expect(names(variables.NODE_EXTRA_CA_CERTS ?? "")).toEqual(["site"]);
  expect(Object.keys(variables).filter((name) => /proxy/i.test(name))).toEqual([]);
  access.become(NO_SITE);
  expect(access.variables({})).toEqual({});
});

it("brings authorities along for an image that has none", () => {
  access.become(site("site"));
  const { SSL_CERT_FILE = "" } = access.variables({});
  expect(names(SSL_CERT_FILE).length).toBeGreaterThan(1000);
  expect(names(SSL_CERT_FILE).at(-1)).toBe("site");
});

it("follows a guest that rebuilds its store or installs one", () => {
  access.become(site("site"));
  writeFileSync(store, certificate("installed"));
  const { SSL_CERT_FILE = "" } = access.variables({});
  expect(names(SSL_CERT_FILE)).toEqual(["installed", "site"]);
  writeFileSync(store, certificate("rebuilt") + certificate("the guest's own"));
  access.variables({});
  expect(names(SSL_CERT_FILE)).toEqual(["rebuilt", "the guest's own", "site"]);
  expect(names(store)).toEqual(["rebuilt", "the guest's own", "site"]);
});

it("leaves a store alone that a name outside the list leads to, and one that is no file", () => {
  writeFileSync(join(root, "elsewhere.crt"), certificate("elsewhere"));
  symlinkSync("../elsewhere.crt", store);
  mkdirSync(join(root, "certs/alias.pem"));
  access.become(site("site"));
  expect(read(store)).toBe(certificate("elsewhere"));
  expect(names(access.variables({}).SSL_CERT_FILE ?? "")).toEqual(["elsewhere", "site"]);
});

it("sets proxies in both spellings, and never for the sandbox's own addresses", () => {
  access.become({ ...NO_SITE, httpProxy: "http://p:1", httpsProxy: "http://p:2", noProxy: "corp.example" });
  const noProxy = "corp.example,localhost,127.0.0.1,::1";
  expect(access.variables({})).toEqual({
    http_proxy: "http://p:1",
    HTTP_PROXY: "http://p:1",
    https_proxy: "http://p:2",
    HTTPS_PROXY: "http://p:2",
    no_proxy: noProxy,
    NO_PROXY: noProxy,
  });
});

it("sets no variable that is missing in the list for sudo", () => {
  access.become({ ...site("site"), httpProxy: "http://p:1", httpsProxy: "http://p:2" });
  expect(Object.keys(access.variables({})).toSorted()).toEqual(SITE_VARIABLES.toSorted());
});

it("leaves out what the caller sets, a proxy in either spelling", () => {
  access.become({ ...site("site"), httpProxy: "http://p:1", httpsProxy: "http://p:2" });
  const variables = access.variables({ HTTPS_PROXY: "", http_proxy: "http://own:3", PIP_CERT: "/own.crt" });
  expect(Object.keys(variables).filter((name) => /https?_proxy/i.test(name))).toEqual([]);
  expect(variables).not.toHaveProperty("PIP_CERT");
  expect(variables).toHaveProperty("SSL_CERT_FILE");
});
