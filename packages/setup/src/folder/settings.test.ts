import { expect, test } from "vitest";
import { dataFolder } from "./data-folder.ts";
import { clientUrls, type PlatformSettings, resolveSettings, serveEnvironment } from "./settings.ts";

const LAST: PlatformSettings = { runtime: "runc", listen: "10.0.0.5", apiPort: 5000, edgePort: 5001, domain: "boxes.example" };

test("the defaults are gVisor and loopback", () => {
  expect(resolveSettings({}, {}, undefined)).toEqual({
    runtime: "gvisor",
    listen: "127.0.0.1",
    apiPort: 4680,
    edgePort: 4681,
    domain: "localhost:4681",
  });
});

test("the command line wins over the environment, and the environment over the last start", () => {
  expect(resolveSettings({}, {}, LAST)).toEqual(LAST);
  expect(resolveSettings({}, { SKERRY_API_PORT: "6000" }, LAST).apiPort).toBe(6000);
  expect(resolveSettings({ apiPort: "7000" }, { SKERRY_API_PORT: "6000" }, LAST).apiPort).toBe(7000);
});

test("another edge port changes the domain", () => {
  expect(resolveSettings({ edgePort: "6001" }, {}, LAST).domain).toBe("localhost:6001");
});

test.each([
  [{ runtime: "docker" }, /use gvisor or runc/],
  [{ listen: "everywhere" }, /--listen takes an IP address/],
  [{ apiPort: "0" }, /--api-port takes a number/],
  [{ apiPort: "08000" }, /--api-port takes a number/],
  [{ edgePort: "65536" }, /--edge-port takes a number/],
  [{ apiPort: "4681" }, /can't both use port 4681/],
])("refuses %j", (options, message) => {
  expect(() => resolveSettings(options, {}, undefined)).toThrow(message);
});

test.each([
  ["0.0.0.0", "http://127.0.0.1:5000"],
  ["::", "http://[::1]:5000"],
  ["fd00::7", "http://[fd00::7]:5000"],
  ["10.0.0.5", "http://10.0.0.5:5000"],
])("a client on this machine reaches a platform on %s", (listen, url) => {
  expect(clientUrls({ ...LAST, listen }).api).toBe(url);
});

test("the platform's process gets its settings and other SKERRY_ variables, and nothing else of the environment", () => {
  const environment = serveEnvironment(dataFolder("/data"), LAST, {
    SKERRY_DNS: "9.9.9.9",
    SKERRY_TEST_CACHE: "/cache",
    SKERRY_ADMIN_TOKEN: "from env --all",
    SKERRY_API_PORT: "1",
    E2B_API_KEY: "secret",
    NODE_OPTIONS: "--inspect",
  });
  expect(environment).toMatchObject({ SKERRY_DATA: "/data", SKERRY_DNS: "9.9.9.9", SKERRY_API_PORT: "5000" });
  for (const name of ["SKERRY_TEST_CACHE", "SKERRY_ADMIN_TOKEN", "E2B_API_KEY", "NODE_OPTIONS"])
    expect(environment).not.toHaveProperty(name);
});

test("TLS stays on until it is turned off, and a domain that nobody chose follows it", () => {
  const first = resolveSettings({ tls: true }, {}, undefined);
  expect(first).toMatchObject({ domain: "skerry.localhost:4443", tls: { port: 4443 } });
  expect(resolveSettings({}, {}, first)).toEqual(first);
  expect(resolveSettings({ tlsPort: "443" }, {}, first)).toMatchObject({ domain: "skerry.localhost:443", tls: { port: 443 } });
  const off = resolveSettings({ tls: false }, {}, first);
  expect(off).toEqual({ ...first, domain: "localhost:4681", tls: undefined });
  expect(resolveSettings({ tls: true }, {}, off)).toEqual(first);
  expect(resolveSettings({ tls: true }, {}, LAST).domain).toBe("boxes.example");
});

test("a certificate from elsewhere may contain its key, and gives way to an own authority", () => {
  const given = resolveSettings({ tlsCert: "/etc/both.pem", tlsPort: "443", domain: "boxes.example" }, {}, undefined);
  expect(given.tls).toEqual({ port: 443, certFile: "/etc/both.pem", keyFile: "/etc/both.pem" });
  expect(resolveSettings({}, {}, given)).toEqual(given);
  expect(resolveSettings({ tls: true }, {}, given).tls).toEqual({ port: 443 });
  const fromEnvironment = resolveSettings({}, { SKERRY_TLS_CERT: "/c.pem", SKERRY_TLS_KEY: "/k.pem" }, undefined);
  expect(fromEnvironment.tls).toEqual({ port: 4443, certFile: "/c.pem", keyFile: "/k.pem" });
  expect(() => resolveSettings({ tlsKey: "/k.pem" }, {}, undefined)).toThrow("a key needs its certificate");
  expect(() => resolveSettings({ tlsPort: "443" }, {}, undefined)).toThrow("--tls-port needs");
  expect(() => resolveSettings({ tls: true, tlsPort: "4680" }, {}, undefined)).toThrow("is the port of the API");
});

test("the platform's process gets the files of its certificate, and none when TLS is off", () => {
  const serve = (settings: PlatformSettings) => serveEnvironment(dataFolder("/data"), settings, { SKERRY_TLS_CERT: "/env.pem" });
  const own = { SKERRY_TLS_PORT: "443", SKERRY_TLS_CERT: "/data/tls/cert.pem", SKERRY_TLS_KEY: "/data/tls/key.pem" };
  expect(serve({ ...LAST, tls: { port: 443 } })).toMatchObject(own);
  expect(serve(LAST).SKERRY_TLS_CERT).toBe("");
});
