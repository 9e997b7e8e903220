import { createHash } from "node:crypto";
import { AGENT_PORT } from "@skerry/wire";
import { describe, expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient } from "./client.ts";
import { logToFile } from "./log-file.ts";
import { createWorld, type Reach, SANDBOX_ID, type WorldConfig } from "./parts.ts";

const HOST = "paths.skerry.test";
const PREFIX = `/s/${SANDBOX_ID}/3000`;
const LINK = `lnk_${"a".repeat(20)}.${"s".repeat(43)}`;
const POLICY = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

/** An edge with the path form, and servers that record what they get. */
async function worldWith(config: WorldConfig = {}, reach: Reach = "direct") {
  const world = await createWorld(reach, { pathHost: `${HOST}:4681`, ...config });
  const seen: { url: string | undefined; raw: string[] }[] = [];
  for (const port of [3000, AGENT_PORT]) {
    const server = await world.serve(port, (req, res) => {
      seen.push({ url: req.url, raw: req.rawHeaders });
      const location = req.headers["x-location"];
      if (location !== undefined) res.setHeader("Location", String(location)).statusCode = 302;
      res.appendHeader("Set-Cookie", "a=b; Path=/; Domain=skerry.test");
      res.appendHeader("Content-Security-Policy", "default-src 'self'");
      res.appendHeader("Clear-Site-Data", '"*"');
      res.end("served");
    });
    server.on("upgrade", (req, socket) => {
      seen.push({ url: req.url, raw: req.rawHeaders });
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nSet-Cookie: a=b; Path=/\r\n\r\nhello");
    });
  }
  const ask = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    fetchThrough(world.port, 3000, { path, method, headers: { host: HOST, ...headers } });
  return { world, seen, ask, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

describe.each<Reach>(["direct", "connect"])("the path form over a %s dial", (reach) => {
  test("leads to a port; its server sees its own path, and the prefix; its answer stays below the prefix", async () => {
    await using scene = await worldWith({}, reach);
    const answer = await scene.ask(`${PREFIX}/a%2Fb?c=d`, { "x-forwarded-prefix": "/forged", "x-location": "/login" });
    expect([answer.status, answer.headers.location]).toEqual([302, `${PREFIX}/login`]);
    expect(answer.headers["set-cookie"]).toEqual([`a=b; Path=${PREFIX}/`]);
    expect(answer.headers["content-security-policy"]).toBe(`default-src 'self', ${POLICY}`);
    expect(answer.headers).not.toHaveProperty("clear-site-data");
    const [{ url, raw } = { url: "", raw: [] }] = scene.seen;
    expect([url, raw[raw.indexOf("X-Forwarded-Prefix") + 1]]).toEqual(["/a%2Fb?c=d", PREFIX]);
    expect(raw.join()).not.toContain("forged");
  });

  test("upgrades too, also those that the server refuses", async () => {
    await using scene = await worldWith({}, reach);
    await scene.world.serve(3001, (_req, res) => res.writeHead(403, { Location: "/x" }).end());
    const upgrade = (port: number) =>
      new RawClient(scene.world.port)
        .send(`GET /s/${SANDBOX_ID}/${port}/ws HTTP/1.1\r\nHost: ${HOST}:4681\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`)
        .untilClosed();
    const opened = await upgrade(3000);
    expect(opened).toMatch(/^HTTP\/1\.1 101 .*hello$/s);
    expect(opened).toContain(`Set-Cookie: a=b; Path=${PREFIX}/\r\n`);
    expect(scene.seen[0]?.url).toBe("/ws");
    expect(scene.seen[0]?.raw.join()).toContain(`X-Forwarded-Prefix,${PREFIX}`);
    expect(await upgrade(3001)).toMatch(new RegExp(`^HTTP/1\\.1 403 .*Location: /s/${SANDBOX_ID}/3001/x\\r\\n`, "s"));
  });
});

test("a missing slash is added, and other hosts know no such paths", async () => {
  await using scene = await worldWith();
  const added = await scene.ask(`${PREFIX}?a=b`, {}, "POST");
  expect([added.status, added.headers.location]).toEqual([308, `${PREFIX}/?a=b`]);
  expect((await scene.ask(`${PREFIX}/`, { host: "other.skerry.test" })).status).toBe(400);
  expect((await scene.ask(`/s/${SANDBOX_ID}/3001/x`, { host: hostOf(3000) })).body.toString()).toBe("served");
  expect(scene.seen.map(({ url }) => url)).toEqual([`/s/${SANDBOX_ID}/3001/x`]);
  await using plain = await worldWith({ pathHost: undefined as never });
  expect((await plain.ask(`${PREFIX}/`)).status).toBe(400);
});

test("no spelling leads to the agent, to another sandbox or out of the prefix", async () => {
  await using scene = await worldWith();
  const host = `Host: ${HOST}\r\n`;
  const get = (path: string, more = host) => `GET ${path} HTTP/1.1\r\n${more}`;
  const attempts: [string, string][] = [
    ["the agent", get(`/s/${SANDBOX_ID}/${AGENT_PORT}/files`)],
    ["the agent with a link", get(`/s/${SANDBOX_ID}/${AGENT_PORT}/files?skerry-link=${LINK}`)],
    ["dot segments", get(`${PREFIX}/../../${SANDBOX_ID}/${AGENT_PORT}/files`)],
    ["encoded dot segments", get(`${PREFIX}/%2e%2e/${AGENT_PORT}/files`)],
    ["an encoded slash after dots", get(`${PREFIX}/..%2f${AGENT_PORT}/files`)],
    ["dot segments with parameters", get(`${PREFIX}/..;/${AGENT_PORT}/files`)],
    ["backslashes", get(`${PREFIX}/..\\${AGENT_PORT}\\files`)],
    ["dot segments before", get(`/x/..${PREFIX}/`)],
    ["an encoded slash in the prefix", get(`/s%2f${SANDBOX_ID}/3000/`)],
    ["two slashes", get(`/${PREFIX}/`)],
    ["two slashes inside", get(`/s//${SANDBOX_ID}/3000/`)],
    ["another host", get(`//${hostOf(AGENT_PORT)}/files`)],
    ["another host in the URL", get(`http://${hostOf(AGENT_PORT)}${PREFIX}/`)],
    ["this host in the URL of another", get(`http://${HOST}${PREFIX}/`, `Host: ${hostOf(AGENT_PORT)}\r\n`)],
    ["a user in the URL", get(`http://x@${HOST}${PREFIX}/`)],
    ["two hosts", get(`${PREFIX}/`, `${host}Host: ${hostOf(AGENT_PORT)}\r\n`)],
    ["a user in the host", get(`${PREFIX}/`, `Host: x@${HOST}\r\n`)],
    ["routing headers", get(`${PREFIX}/`, `${host}E2b-Sandbox-Id: ${SANDBOX_ID}\r\nE2b-Sandbox-Port: ${AGENT_PORT}\r\n`)],
    ["one routing header", get(`${PREFIX}/`, `${host}E2b-Sandbox-Port: ${AGENT_PORT}\r\n`)],
    ["a forwarded host", get(`${PREFIX}/`, `Host: localhost\r\nX-Forwarded-Host: ${HOST}\r\n`)],
    ["a signed file URL", get("/files?path=a&signature=v1_x")],
    ["the root", get("/")],
    ["everything", `OPTIONS * HTTP/1.1\r\n${host}`],
    ["a port with a zero", get(`/s/${SANDBOX_ID}/0${AGENT_PORT}/`)],
    ["a port that wraps around", get(`/s/${SANDBOX_ID}/${AGENT_PORT + 65_536}/`)],
    ["an upgrade to the agent", get(`/s/${SANDBOX_ID}/${AGENT_PORT}/`, `${host}Upgrade: x\r\n`)],
  ];
  for (const [name, head] of attempts) {
    const upgrades = head.includes("Upgrade");
    const answer = await new RawClient(scene.world.port).send(`${head}Connection: ${upgrades ? "Upgrade" : "close"}\r\n\r\n`).untilClosed();
    expect([name, answer.slice(9, 12)]).toEqual([name, "400"]);
  }
  expect([scene.seen, scene.world.sandboxes.dials]).toEqual([[], 0]);
  const full = new RawClient(scene.world.port).send(`${get(`http://${HOST}${PREFIX}/full`)}Connection: close\r\n\r\n`);
  expect(await full.untilClosed()).toMatch(/^HTTP\/1\.1 200 /);
  expect(scene.seen.map(({ url }) => url)).toEqual(["/full"]);
});

test("attempts on the agent leave a trace in the log", async () => {
  using log = logToFile();
  await using scene = await worldWith({ logger: log.logger });
  await scene.ask(`/s/${SANDBOX_ID}/${AGENT_PORT}/files`);
  expect(JSON.parse(log.read())).toMatchObject({ sandbox_id: SANDBOX_ID, port: AGENT_PORT, reason: "agent by path" });
});

test("a private sandbox asks for its token or a link, whose cookie is for the prefix alone", async () => {
  const token = "5ec4e7".repeat(10);
  await using scene = await worldWith({
    findLink: async ({ port }, { linkId }) => (port === 3000 && LINK.startsWith(linkId) ? { expiresInMs: 60_000, methods: [] } : undefined),
  });
  const { find } = scene.world.routes;
  const ingress = { tokenDigest: createHash("sha256").update(token).digest(), tlsPorts: new Set<number>(), hostTemplate: "app:${PORT}" };
  scene.world.routes.find = async (sandboxId, visitor, options) => {
    const answer = await find(sandboxId, visitor, options);
    return answer.kind === "running" ? { ...answer, route: { ...answer.route, ingress } } : answer;
  };
  expect((await scene.ask(`${PREFIX}/`)).status).toBe(403);
  expect((await scene.ask(`${PREFIX}/`, { "e2b-traffic-access-token": token })).status).toBe(200);
  const opened = await scene.ask(`${PREFIX}/page?skerry-link=${LINK}`);
  expect([opened.status, opened.headers.location]).toEqual([302, `${PREFIX}/page`]);
  expect(opened.headers["set-cookie"]).toEqual([`skerry-link=${LINK}; Path=${PREFIX}/; Max-Age=59; HttpOnly; SameSite=Lax`]);
  expect((await scene.ask(`${PREFIX}/page`, { cookie: `skerry-link=${LINK}` })).status).toBe(200);
  expect((await scene.ask(`/s/${SANDBOX_ID}/3001/page`, { cookie: `skerry-link=${LINK}` })).status).toBe(403);
  // The Host that the server sees is a part of its own redirects.
  const moved = await scene.ask(`${PREFIX}/`, { "e2b-traffic-access-token": token, "x-location": "http://app:3000/x" });
  expect(moved.headers.location).toBe(`${PREFIX}/x`);
});
