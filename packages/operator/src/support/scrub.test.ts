import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import { Scrubber, secretsInUrl } from "./scrub.ts";

const scrub = (text: string, secrets: readonly string[] = []) => new Scrubber(secrets).scrub(text);

describe("known secrets", () => {
  it.each([
    ["as they are", (secret: string) => secret],
    ["in a URL", (secret: string) => `http://h/?q=${encodeURIComponent(secret)}`],
    ["in JSON", (secret: string) => JSON.stringify({ text: JSON.stringify(secret) })],
    ["in base64", (secret: string) => Buffer.from(secret).toString("base64")],
    ["in hex", (secret: string) => Buffer.from(secret).toString("hex")],
    ["within a word", (secret: string) => `abc${secret}def`],
  ])("are removed %s", (_name, write) => {
    const secret = 'pass word"é&/+x';
    const text = scrub(`before ${write(secret)} after`, [secret]);
    expect(text).toContain("[removed]");
    expect(text).toMatch(/^before .* after$/);
    for (const part of ["pass word", "pass%20word", Buffer.from(secret).toString("hex").slice(0, 12)]) expect(text).not.toContain(part);
  });

  it("of a URL are its password and the whole URL", () => {
    const url = "postgres://user:p%40ssw0rd@db.example:5432/x?sslmode=require";
    expect(secretsInUrl(url)).toEqual(expect.arrayContaining(["p%40ssw0rd", "p@ssw0rd", url]));
    expect(secretsInUrl("http://proxy.example:3128")).toEqual([]);
    expect(scrub("connecting as user with p@ssw0rd", secretsInUrl(url))).toBe("connecting as user with [removed]");
  });
});

describe("what has the form of a secret", () => {
  it.each([
    "e2b_0123456789abcdef0123456789abcdef01234567",
    "sk_e2b_0123456789abcdef",
    "skerry_admin_0123456789abcdef",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    `inv_${"A".repeat(43)}`,
    `lnk_${"a".repeat(20)}.${"B".repeat(43)}`,
    "Bearer abc.def-123456",
    "Basic dXNlcjpwYXNz",
    `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl`,
    "0".repeat(64),
  ])("is removed: %s", (secret) => {
    const kept = secret.slice(-6);
    expect(scrub(`x ${secret} y`)).not.toContain(kept);
    expect(scrub(JSON.stringify({ message: `x ${secret} y` }))).not.toContain(kept);
  });

  it.each([
    ["postgres://user:hunter22@host/db", "postgres://[removed]@host/db"],
    ["http://token@proxy.example:3128/", "http://[removed]@proxy.example:3128/"],
    ['{"password":"hunter22","a":1}', '{"password":"[removed]","a":1}'],
    ['{"x":"{\\"apiKey\\":\\"hunter22\\"}"}', '{"x":"{\\"apiKey\\":\\"[removed]\\"}"}'],
    ["X-API-Key: hunter22", "X-API-Key: [removed]"],
    ["GET /f?signature=hunter22&path=/x", "GET /f?signature=[removed]&path=/x"],
    ["REGISTRY_PASSWORD=hunter22", "REGISTRY_PASSWORD=[removed]"],
    ["-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nrest", "[removed]\nrest"],
  ])("is removed, and the rest stays: %s", (text, expected) => expect(scrub(text)).toBe(expected));

  it.each([
    "sandbox_id=i0123456789abcdefghij",
    `layer sha256:${"a".repeat(64)} mounted`,
    "duration_ms: 12",
    "http://127.0.0.1:4680/health",
  ])("is not found in %s", (text) => expect(scrub(text)).toBe(text));
});
