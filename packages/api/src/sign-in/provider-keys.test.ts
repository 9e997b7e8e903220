import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createLogger } from "@skerry/base";
import { exportJWK, type FlattenedJWSInput, generateKeyPair, type JWK } from "jose";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fetchJson, isSafeUrl, ProviderAway } from "./fetch-json.ts";
import { ProviderKeys } from "./provider-keys.ts";

const MINUTE_MS = 60_000;
const logger = createLogger({ name: "test", level: "silent" as "error", fd: 2 });
const unsigned: FlattenedJWSInput = { payload: "", signature: "" };

let url: string;
let answer: RequestListener;
let asked: string[];
let now: number;
let keys: JWK[];
let stack: AsyncDisposableStack;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  asked = [];
  now = 0;
  keys = [await keyOf("a")];
  answer = (request, response) => {
    asked.push(request.url ?? "");
    response.end(JSON.stringify(request.url === "/jwks" ? { keys } : { issuer: url, jwks_uri: `${url}/jwks` }));
  };
  const server = createServer((request, response) => answer(request, response)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => stack.disposeAsync());

async function keyOf(kid: string): Promise<JWK> {
  return { ...(await exportJWK((await generateKeyPair("ES256", { extractable: true })).publicKey)), kid, alg: "ES256" };
}

const create = () => new ProviderKeys({ issuer: url, retryMs: 10_000, now: () => now, logger });
const find = (provider: ProviderKeys, kid: string) => provider.find({ alg: "ES256", kid }, unsigned);
const away: RequestListener = (_request, response) => response.writeHead(500).end();
const reads = () => asked.filter((path) => path === "/jwks").length;

test("are read once, and again when a token names a key that is not known, but not for every such token", async () => {
  const provider = create();
  await Promise.all([find(provider, "a"), find(provider, "a")]);
  await find(provider, "a");
  expect(reads()).toBe(1);
  keys = [await keyOf("b")];
  // The last attempt was just now: an invented key must not make the provider busy.
  await expect(find(provider, "b")).rejects.toThrow("no applicable key");
  now += 10_000;
  await Promise.all([find(provider, "b"), find(provider, "b")]);
  expect(reads()).toBe(2);
  // What the provider has withdrawn is not accepted any more.
  now += 10_000;
  await expect(find(provider, "a")).rejects.toThrow("no applicable key");
  expect(reads()).toBe(3);
  for (let count = 0; count < 20; count += 1) await expect(find(provider, `invented-${count}`)).rejects.toThrow("no applicable key");
  expect(reads()).toBe(3);
});

test("are renewed beside the requests, so that a slow provider delays none", async () => {
  const provider = create();
  await find(provider, "a");
  const hung = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const good = answer;
  answer = (request, response) => {
    begin();
    void hung.promise.then(() => good(request, response));
  };
  now += 6 * MINUTE_MS;
  keys = [await keyOf("b")];
  await find(provider, "a");
  await begun;
  await find(provider, "a");
  answer = good;
  hung.resolve();
  // Waits for the attempt that is under way.
  await find(provider, "b");
  await expect(find(provider, "a")).rejects.toThrow("no applicable key");
});

test("are used for a day while the provider is away, and no longer", async () => {
  const provider = create();
  answer = away;
  await expect(find(provider, "a")).rejects.toThrow(ProviderAway);
  answer = (_request, response) => response.destroy();
  now += 10_000;
  await expect(find(provider, "a")).rejects.toThrow(ProviderAway);
  answer = (request, response) => {
    response.end(JSON.stringify(request.url === "/jwks" ? { keys } : { issuer: url, jwks_uri: `${url}/jwks` }));
  };
  // Not within the time between two attempts.
  await expect(find(provider, "a")).rejects.toThrow(ProviderAway);
  now += 10_000;
  await find(provider, "a");
  answer = away;
  now += 23 * 60 * MINUTE_MS;
  await find(provider, "a");
  now += 2 * 60 * MINUTE_MS;
  await expect(find(provider, "a")).rejects.toThrow("answered 500");
});

test.each<[string, (about: () => string) => object | string]>([
  ["names another issuer", () => ({ issuer: "https://evil.example", jwks_uri: "https://evil.example/jwks" })],
  ["names no keys", (issuer) => ({ issuer: issuer() })],
  ["names keys without TLS", (issuer) => ({ issuer: issuer(), jwks_uri: "http://login.example.com/jwks" })],
  ["names keys in a file", (issuer) => ({ issuer: issuer(), jwks_uri: "file:///etc/passwd" })],
  ["is no JSON", () => "<html>"],
  ["is null", () => "null"],
  ["is endless", () => `"${"x".repeat(2 * 1024 * 1024)}"`],
])("are not taken from a provider whose configuration %s", async (_what, make) => {
  answer = (_request, response) => {
    const made = make(() => url);
    response.end(typeof made === "string" ? made : JSON.stringify(made));
  };
  await expect(find(create(), "a")).rejects.toThrow(ProviderAway);
});

test("are not followed to another address", async () => {
  answer = (_request, response) => response.writeHead(302, { Location: "https://evil.example/" }).end();
  await expect(fetchJson(`${url}/jwks`)).rejects.toThrow(ProviderAway);
  expect(["https://a.example/b", "http://localhost:1", "http://[::1]/"].every(isSafeUrl)).toBe(true);
  expect(["http://a.example", "http://localhost.evil.example", "ftp://localhost", "x", ""].some(isSafeUrl)).toBe(false);
});
