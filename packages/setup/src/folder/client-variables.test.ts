import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { clientVariables, shellQuote } from "./client-variables.ts";

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

test("a client needs four variables", () => {
  expect(clientVariables(SECRETS, SETTINGS, false)).toEqual({
    E2B_API_KEY: "e2b_1",
    E2B_API_URL: "http://127.0.0.1:4680",
    E2B_SANDBOX_URL: "http://127.0.0.1:4681",
    E2B_DOMAIN: "localhost:4681",
  });
});

test("neither form contains internal secrets", () => {
  const all = Object.values(clientVariables(SECRETS, SETTINGS, true));
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
