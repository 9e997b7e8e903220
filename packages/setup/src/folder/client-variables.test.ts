import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { clientVariables, shellQuote } from "./client-variables.ts";
import { dataFolder } from "./data-folder.ts";
import type { PlatformSettings } from "./settings.ts";
import { localTlsFiles } from "./tls-files.ts";

const SECRETS = {
  apiKey: "e2b_1",
  accessToken: "sk_e2b_2",
  adminToken: "admin",
  teamId: "team",
  userId: "user",
  internalSecret: "internal",
  tokenSeed: "seed",
};
const SETTINGS = { runtime: "gvisor", listen: "127.0.0.1", apiPort: 4680, edgePort: 4681, domain: "localhost:4681" } as const;
const variables = (settings: PlatformSettings, all = false) =>
  clientVariables({ secrets: SECRETS, settings, tlsFiles: localTlsFiles(dataFolder("/data")), all });

test("with TLS, a client needs the domain and our authority; with a certificate from elsewhere, the domain alone", () => {
  const domain = "boxes.test:4443";
  expect(variables({ ...SETTINGS, domain, tls: { port: 4443 } })).toEqual({
    E2B_API_KEY: "e2b_1",
    E2B_DOMAIN: domain,
    NODE_EXTRA_CA_CERTS: "/data/tls/ca.pem",
    SSL_CERT_FILE: "/data/tls/bundle.pem",
  });
  const given = { port: 4443, certFile: "/cert.pem", keyFile: "/key.pem" };
  expect(variables({ ...SETTINGS, domain, tls: given })).toEqual({ E2B_API_KEY: "e2b_1", E2B_DOMAIN: domain });
});

test("a client needs five variables", () => {
  expect(variables(SETTINGS)).toEqual({
    E2B_API_KEY: "e2b_1",
    E2B_API_URL: "http://127.0.0.1:4680",
    E2B_SANDBOX_URL: "http://127.0.0.1:4681",
    E2B_VOLUME_API_URL: "http://127.0.0.1:4680",
    E2B_DOMAIN: "localhost:4681",
  });
});

test("neither form contains internal secrets", () => {
  const all = Object.values(variables(SETTINGS, true));
  expect(all).toEqual(expect.arrayContaining(["sk_e2b_2", "team", "user", "admin"]));
  expect(all).not.toContain("internal");
  expect(all).not.toContain("seed");
});

test("a shell reads every quoted value unchanged", () => {
  const hostile = ["", "a b", "it's", "$(id)", "`id`", "a\nb", '"; rm -rf /', "\\", "*"];
  for (const value of hostile) expect(execFileSync("sh", ["-c", `printf %s ${shellQuote(value)}`]).toString()).toBe(value);
  fc.assert(
    fc.property(
      fc.string().filter((value) => !value.includes("\0")),
      (value) => {
        expect(execFileSync("sh", ["-c", `printf %s ${shellQuote(value)}`]).toString()).toBe(Buffer.from(value).toString());
      },
    ),
    { numRuns: 20 },
  );
});
