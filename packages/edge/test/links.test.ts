import { createHash } from "node:crypto";
import { openSync } from "node:fs";
import { createLogger } from "@skerry/base";
import { AGENT_PORT } from "@skerry/wire";
import { describe, expect, test } from "vitest";
import type { FindLink, ValidLink, Visitor } from "../src/index.ts";
import { fetchThrough, hostOf, RawClient } from "./client.ts";
import { logToFile } from "./log-file.ts";
import { createWorld, type Reach, SANDBOX_ID, type WorldConfig } from "./parts.ts";
import { createTlsWorld } from "./tls-world.ts";

const token = (id: string, secret = "s") => `lnk_${id.repeat(20)}.${secret.repeat(43)}`;
const LINK = token("a");
const OTHER_PORT = token("b");
const READ_ONLY = token("c");
const UNKNOWN = token("d");
const TRAFFIC_TOKEN = "5ec4e7".repeat(10);
const BROWSER = { "user-agent": "Mozilla/5.0 Chrome/140.0", accept: "text/html" };

interface Options extends WorldConfig {
  readonly isPublic?: boolean;
}

/** A sandbox with links to port 3000 and one to port 3001. Its servers record what they get. */
async function worldWith({ isPublic = false, ...config }: Options = {}, reach: Reach = "direct") {
  const links = new Map<string, ValidLink & { readonly port: number }>([
    [LINK, { port: 3000, expiresInMs: 60_000, methods: [] }],
    [OTHER_PORT, { port: 3001, expiresInMs: 60_000, methods: [] }],
    [READ_ONLY, { port: 3000, expiresInMs: 60_000, methods: ["GET", "HEAD"] }],
  ]);
  let asked = 0;
  const findLink: FindLink = async ({ sandboxId, port }, { linkId, digest }) => {
    asked++;
    for (const [text, link] of links) {
      const isRight = text.startsWith(`${linkId}.`) && createHash("sha256").update(text).digest().equals(digest);
      if (isRight && sandboxId === SANDBOX_ID && port === link.port) return link;
    }
    return undefined;
  };
  const world = await createWorld(reach, { findLink, ...config });
  const visitors: (Visitor | undefined)[] = [];
  const { find } = world.routes;
  const ingress = { tokenDigest: createHash("sha256").update(TRAFFIC_TOKEN).digest(), tlsPorts: new Set<number>() };
  world.routes.find = async (sandboxId, visitor) => {
    visitors.push(visitor);
    const answer = await find(sandboxId, visitor);
    return answer.kind === "running" && !isPublic ? { ...answer, route: { ...answer.route, ingress } } : answer;
  };
  const seen: { url: string | undefined; method: string | undefined; raw: string[] }[] = [];
  for (const port of [3000, 3001, AGENT_PORT]) {
    const server = await world.serve(port, (req, res) => {
      seen.push({ url: req.url, method: req.method, raw: req.rawHeaders });
      res.setHeader("Set-Cookie", ["app=1", "skerry-link=forged; Path=/", " skerry-link =x", "skerry-linked=2"]);
      res.end("served");
    });
    server.on("upgrade", (req, socket) => {
      seen.push({ url: req.url, method: req.method, raw: req.rawHeaders });
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nSet-Cookie: skerry-link=x\r\n\r\nhello");
    });
  }
  const ask = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    fetchThrough(world.port, 3000, { path, method, headers: { host: hostOf(3000), ...headers } });
  return {
    world,
    links,
    seen,
    visitors,
    ask,
    /** How often the control plane was asked for a link. */
    asked: () => asked,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

const page = (text: string) => JSON.parse(text);
const cookie = (...tokens: string[]) => ({ cookie: tokens.map((text) => `skerry-link=${text}`).join("; ") });

describe.each<Reach>(["direct", "connect"])("links to a private sandbox over a %s dial", (reach) => {
  test("a page is opened with a redirect and a cookie, and the server sees no token", async () => {
    await using scene = await worldWith({}, reach);
    const opened = await scene.ask(`/app?a=1&skerry-link=${LINK}&b=%20`, BROWSER);
    expect([opened.status, opened.headers.location, opened.body.length]).toEqual([302, "/app?a=1&b=%20", 0]);
    expect(opened.headers["set-cookie"]).toEqual([`skerry-link=${LINK}; Path=/; Max-Age=59; HttpOnly; SameSite=Lax`]);
    expect(opened.headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
    expect(scene.seen).toEqual([]);
    const shown = await scene.ask("/app?a=1&b=%20", { cookie: `one=1; skerry-link=${LINK}; two=2` });
    expect([shown.status, shown.body.toString()]).toEqual([200, "served"]);
    expect(shown.headers["set-cookie"]).toEqual(["app=1", "skerry-linked=2"]);
    expect(scene.seen.map(({ url }) => url)).toEqual(["/app?a=1&b=%20"]);
    expect(scene.seen[0]?.raw).toContain("one=1; two=2");
    expect(JSON.stringify(scene.seen)).not.toMatch(/skerry-link|lnk_/);
  });

  test("programs use the header, or the query with any method but those of pages; upgrades too", async () => {
    await using scene = await worldWith({}, reach);
    expect((await scene.ask("/one", { "Skerry-Link-Token": LINK })).status).toBe(200);
    expect((await scene.ask(`/two?skerry-link=${LINK}`, {}, "POST")).status).toBe(200);
    const upgrade = (line: string, extra = "") =>
      new RawClient(scene.world.port)
        .send(`GET ${line} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n${extra}\r\n`)
        .untilClosed();
    for (const answer of [
      await upgrade(`/three?skerry-link=${LINK}&x`),
      await upgrade("/four", `Cookie: skerry-link=${LINK}\r\n`),
      await upgrade("/five", `Skerry-Link-Token: ${LINK}\r\n`),
    ]) {
      expect(answer).toMatch(/^HTTP\/1\.1 101 .*hello$/s);
      expect(answer).not.toMatch(/set-cookie/i);
    }
    expect(await upgrade(`/six?skerry-link=${UNKNOWN}`)).toMatch(/^HTTP\/1\.1 403 /);
    expect(scene.seen.map(({ url }) => url)).toEqual(["/one", "/two", "/three?x", "/four", "/five"]);
    expect(JSON.stringify(scene.seen)).not.toMatch(/skerry-link|lnk_/i);
  });
});

test("no other link and no other way of showing one opens the port", async () => {
  await using scene = await worldWith();
  const raw = (head: string, body = "") => new RawClient(scene.world.port).send(`${head}Connection: close\r\n\r\n${body}`).untilClosed();
  const host = `Host: ${hostOf(3000)}\r\n`;
  const elsewhere = `Host: ${hostOf(3000, `${SANDBOX_ID.slice(0, -1)}b`)}\r\n`;
  scene.world.sandboxes.ports.set(`${SANDBOX_ID.slice(0, -1)}b`, new Map([[3000, 1]]));
  const field = (text: string) => `Skerry-Link-Token: ${text}\r\n`;
  const attempts: [string, string, number][] = [
    ["unknown", `GET / HTTP/1.1\r\n${host}${field(UNKNOWN)}`, 403],
    ["another secret", `GET / HTTP/1.1\r\n${host}${field(token("a", "t"))}`, 403],
    ["no token", `GET / HTTP/1.1\r\n${host}${field("x")}`, 403],
    ["an empty one", `GET / HTTP/1.1\r\n${host}${field("")}`, 403],
    ["with a space inside", `GET / HTTP/1.1\r\n${host}${field(`${LINK} x`)}`, 403],
    ["another port", `GET / HTTP/1.1\r\n${host}${field(OTHER_PORT)}`, 403],
    ["another sandbox", `GET / HTTP/1.1\r\n${elsewhere}${field(LINK)}`, 403],
    ["twice in the header", `GET / HTTP/1.1\r\n${host}${field(LINK)}${field(LINK)}`, 403],
    ["twice in the query", `GET /?skerry-link=${LINK}&skerry-link=${LINK} HTTP/1.1\r\n${host}`, 403],
    ["in header and query", `GET /?skerry-link=${LINK} HTTP/1.1\r\n${host}${field(LINK)}`, 403],
    ["a wrong one in the header, a right one in a cookie", `GET / HTTP/1.1\r\n${host}${field("x")}Cookie: skerry-link=${LINK}\r\n`, 403],
    [
      "another port in a header",
      `GET / HTTP/1.1\r\n${host}E2b-Sandbox-Id: ${SANDBOX_ID}\r\nE2b-Sandbox-Port: 3001\r\n${field(OTHER_PORT)}`,
      403,
    ],
    ["a forwarded host", `GET / HTTP/1.1\r\n${host}X-Forwarded-Host: ${hostOf(3001)}\r\n${field(OTHER_PORT)}`, 403],
    ["a method in a header", `GET / HTTP/1.1\r\n${host}X-HTTP-Method-Override: DELETE\r\n${field(READ_ONLY)}`, 403],
    ["another method", `DELETE / HTTP/1.1\r\n${host}${field(READ_ONLY)}`, 403],
    ["another method with a cookie", `DELETE / HTTP/1.1\r\n${host}Cookie: skerry-link=${READ_ONLY}\r\n`, 403],
    ["the header of traffic tokens", `GET / HTTP/1.1\r\n${host}E2b-Traffic-Access-Token: ${LINK}\r\n`, 403],
    ["a bearer", `GET / HTTP/1.1\r\n${host}Authorization: Bearer ${LINK}\r\n`, 403],
    ["an encoded name", `GET /?skerry%2Dlink=${LINK} HTTP/1.1\r\n${host}`, 403],
    ["a fragment", `GET /x#?skerry-link=${UNKNOWN} HTTP/1.1\r\n${host}`, 403],
    ["a trailer", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTrailer: Skerry-Link-Token\r\n`, 403],
    ["a page of another host", `GET //evil.example/?skerry-link=${LINK} HTTP/1.1\r\n${host}`, 400],
    ["a page of another host, with a backslash", `GET /\\evil.example/?skerry-link=${LINK} HTTP/1.1\r\n${host}`, 400],
  ];
  for (const [name, head, status] of attempts) {
    const answer = await raw(head, head.startsWith("POST") ? `0\r\nSkerry-Link-Token: ${LINK}\r\n\r\n` : "");
    expect([name, answer.slice(9, 12)]).toEqual([name, String(status)]);
    expect(answer).not.toMatch(/lnk_[a-z]/);
  }
  expect([scene.seen, scene.world.sandboxes.dials]).toEqual([[], 0]);
});

test("a right token opens it with others beside it, where nobody chose them", async () => {
  await using scene = await worldWith();
  expect((await scene.ask("/", cookie(UNKNOWN, "rubbish", LINK))).status).toBe(200);
  expect((await scene.ask("/", { ...cookie(UNKNOWN), "e2b-traffic-access-token": TRAFFIC_TOKEN })).status).toBe(200);
  expect((await scene.ask("/", { "skerry-link-token": READ_ONLY })).status).toBe(200);
  expect((await scene.ask("/", { "skerry-link-token": READ_ONLY }, "HEAD")).status).toBe(200);
});

test("the agent's port is opened by no link, and its server sees none", async () => {
  await using scene = await worldWith();
  scene.links.set(LINK, { port: AGENT_PORT, expiresInMs: 60_000, methods: [] });
  const ask = (headers: object) => fetchThrough(scene.world.port, AGENT_PORT, { headers: { host: hostOf(AGENT_PORT), ...headers } });
  expect((await ask({ "skerry-link-token": LINK, cookie: `a=b; skerry-link=${LINK}` })).body.toString()).toBe("served");
  expect(JSON.stringify(scene.seen)).not.toMatch(/skerry-link|lnk_/i);
  expect([scene.asked(), scene.visitors]).toEqual([0, [expect.objectContaining({ port: AGENT_PORT })]]);
  expect(scene.visitors[0]?.link).toBeUndefined();
});

test("a public sandbox: a link that somebody shows must be valid, a cookie need not be", async () => {
  await using scene = await worldWith({ isPublic: true });
  expect((await scene.ask("/", { "skerry-link-token": UNKNOWN })).status).toBe(403);
  expect((await scene.ask(`/?skerry-link=${UNKNOWN}`)).status).toBe(403);
  expect((await scene.ask("/", cookie(UNKNOWN))).status).toBe(200);
  expect((await scene.ask("/", cookie(READ_ONLY), "DELETE")).status).toBe(200);
  expect((await scene.ask(`/?skerry-link=${LINK}`)).status).toBe(302);
});

test("only a valid link is passed on to wake the sandbox, and opening one wakes nothing", async () => {
  await using scene = await worldWith();
  await scene.ask("/", { "skerry-link-token": UNKNOWN });
  await scene.ask(`/?skerry-link=${LINK}`);
  expect(scene.visitors).toEqual([]);
  await scene.ask("/", cookie(UNKNOWN));
  await scene.ask("/", cookie(LINK));
  expect(scene.visitors.flatMap((visitor) => (visitor ? [visitor.link?.linkId] : []))).toEqual([undefined, LINK.split(".")[0]]);
  expect(JSON.stringify(scene.visitors)).not.toContain(LINK);
});

test("a link counts for five seconds without being looked up, expires at its time, and is not used when it cannot be looked up", async () => {
  let now = 0;
  let isAway = false;
  await using scene = await worldWith({ now: () => now });
  const { links, asked } = scene;
  links.set(LINK, { port: 3000, expiresInMs: 12_000, methods: [] });
  const status = async () => (await scene.ask("/", { "skerry-link-token": LINK })).status;
  expect([await status(), await status(), asked()]).toEqual([200, 200, 1]);
  now = 4_999;
  links.delete(LINK);
  expect([await status(), asked()]).toEqual([200, 1]);
  now = 5_000;
  expect([await status(), await status(), asked()]).toEqual([403, 403, 2]);
  links.set(LINK, { port: 3000, expiresInMs: 2_000, methods: [] });
  now = 10_000;
  expect([await status(), asked()]).toEqual([200, 3]);
  now = 12_000;
  expect([await status(), asked()]).toEqual([403, 3]);
  await using lost = await worldWith({
    now: () => now,
    findLink: async () => {
      if (isAway) throw new Error("the control plane is away");
      return { expiresInMs: 60_000, methods: [] };
    },
    logger: createLogger({ name: "edge", level: "error", fd: openSync("/dev/null", "w") }),
  });
  const ask = async () => (await lost.ask("/", { "skerry-link-token": LINK })).status;
  expect(await ask()).toBe(200);
  isAway = true;
  expect(await ask()).toBe(200);
  now += 5_000;
  expect(await ask()).toBe(502);
  isAway = false;
  expect(await ask()).toBe(200);
});

test("refused links leave a trace in the log with their ids, without their tokens; many of them end with 429", async () => {
  using log = logToFile();
  let now = 0;
  await using scene = await worldWith({ logger: log.logger, now: () => now });
  await scene.ask("/", { "skerry-link-token": UNKNOWN });
  await scene.ask(`/?skerry-link=${READ_ONLY}`, {}, "PUT");
  now = 20_000;
  const revoked = await scene.ask("/", { ...cookie(UNKNOWN), ...BROWSER });
  expect([revoked.status, revoked.headers["content-type"]]).toEqual([403, "text/html; charset=utf-8"]);
  expect(revoked.body.toString()).toContain("<h1>Link Not Valid</h1>");
  const many = Array.from({ length: 70 }, (_, at) => `lnk_${String(at).padStart(20, "0")}.${"s".repeat(43)}`);
  const statuses = new Set<number>();
  for (const text of many) statuses.add((await scene.ask("/", { "skerry-link-token": text })).status);
  expect([...statuses].sort()).toEqual([403, 429]);
  expect((await scene.ask("/", { "e2b-traffic-access-token": TRAFFIC_TOKEN })).status).toBe(200);
  const lines = log
    .read()
    .trim()
    .split("\n")
    .map((line) => page(line));
  const [unknown, readOnly] = [UNKNOWN, READ_ONLY].map((text) => text.split(".")[0]);
  expect(lines).toMatchObject([
    { sandbox_id: SANDBOX_ID, port: 3000, reason: "link invalid", link_id: unknown, client_address: expect.stringContaining("127.0.0.1") },
    { reason: "link method", link_id: readOnly },
    { reason: "link invalid", link_id: unknown },
    { reason: "link limited" },
  ]);
  expect(log.read()).not.toMatch(/sssss/);
});

test("over TLS, and behind a proxy that is trusted and says so, the cookie is for TLS alone", async () => {
  const findLink: FindLink = async () => ({ expiresInMs: 60_000, methods: [] });
  const cookieOf = (headers: Record<string, unknown>) => String(headers["set-cookie"]);
  await using tls = await createTlsWorld({ findLink });
  const secure = await tls.fetch(3000, { path: `/?skerry-link=${LINK}`, headers: { host: hostOf(3000) } });
  expect([secure.status, cookieOf(secure.headers)]).toEqual([302, expect.stringContaining("; Secure")]);
  for (const [trustedProxies, proto, isSecure] of [
    [["127.0.0.0/8", "::ffff:127.0.0.0/104"], "https", true],
    [["127.0.0.0/8", "::ffff:127.0.0.0/104"], "https, http", false],
    [["10.0.0.1"], "https", false],
    [[], "https", false],
  ] as const) {
    await using world = await createWorld("direct", { findLink, trustedProxies });
    const headers = { host: hostOf(3000), "x-forwarded-proto": proto };
    const opened = await fetchThrough(world.port, 3000, { path: `/?skerry-link=${LINK}`, headers });
    expect([proto, trustedProxies, cookieOf(opened.headers).includes("Secure")]).toEqual([proto, trustedProxies, isSecure]);
  }
});
