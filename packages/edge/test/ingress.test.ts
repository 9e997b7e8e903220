import { createHash } from "node:crypto";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import { AGENT_PORT } from "@skerry/wire";
import { describe, expect, test } from "vitest";
import type { Ingress } from "../src/index.ts";
import { fetchThrough, hostOf, RawClient, waitFor } from "./client.ts";
import { Control } from "./control.ts";
import { logToFile } from "./log-file.ts";
import { createWorld, listen, type Reach, SANDBOX_ID, type WorldConfig } from "./parts.ts";

const TOKEN = "5ec4e7".repeat(10);
const OTHER = "0dd".repeat(20);
const PRIVATE: Ingress = { tokenDigest: createHash("sha256").update(TOKEN).digest(), tlsPorts: new Set() };

/** A world whose sandbox has these rules. Its servers on 3000 and on the agent's port record the heads that they get. */
async function worldWith(ingress: Ingress, reach: Reach = "direct", config: WorldConfig = {}) {
  const world = await createWorld(reach, config);
  const find = world.routes.find;
  world.routes.find = async (...asked) => {
    const answer = await find(...asked);
    return answer.kind === "running" ? { ...answer, route: { ...answer.route, ingress } } : answer;
  };
  const seen: string[][] = [];
  for (const port of [3000, AGENT_PORT]) {
    const server = await world.serve(port, (req, res) => {
      seen.push(req.rawHeaders);
      res.end("served");
    });
    server.on("upgrade", (req, socket) => {
      seen.push(req.rawHeaders);
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello");
    });
  }
  return { world, seen, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

describe.each<Reach>(["direct", "connect"])("a private sandbox over a %s dial", (reach) => {
  test("its ports ask for the token, and its servers never see it", async () => {
    await using scene = await worldWith(PRIVATE, reach);
    const { world, seen } = scene;
    const ask = (headers: object) => fetchThrough(world.port, 3000, { headers: { host: hostOf(3000), ...headers } });
    const missing = await ask({});
    expect([missing.status, missing.body.toString()]).toEqual([
      403,
      `{"sandboxId":"${SANDBOX_ID}","message":"Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing","code":403}`,
    ]);
    const invalid = await ask({ "e2b-traffic-access-token": OTHER });
    expect([invalid.status, JSON.parse(invalid.body.toString())]).toEqual([
      403,
      {
        sandboxId: SANDBOX_ID,
        message: "Sandbox is secured with traffic access token. Provided token in header 'e2b-traffic-access-token' is invalid",
        code: 403,
      },
    ]);
    expect(world.sandboxes.dials).toBe(0);
    expect((await ask({ "E2B-Traffic-Access-Token": TOKEN })).body.toString()).toBe("served");
    expect(seen.flat().join()).not.toMatch(new RegExp(`${TOKEN}|traffic-access`, "i"));
  });

  test("it is not asked for when the sandbox has ended", async () => {
    await using scene = await worldWith(PRIVATE, reach, { control: new Control() });
    const { world } = scene;
    const ask = async (headers: object) => (await fetchThrough(world.port, 3000, { headers: { host: hostOf(3000), ...headers } })).status;
    expect(await ask({ "e2b-traffic-access-token": TOKEN })).toBe(200);
    world.sandboxes.kill(SANDBOX_ID);
    expect([await ask({}), await ask({ "e2b-traffic-access-token": OTHER })]).toEqual([502, 502]);
  });

  test("upgrades ask for it too", async () => {
    await using scene = await worldWith(PRIVATE, reach);
    const { world, seen } = scene;
    const upgrade = (extra: string) =>
      new RawClient(world.port)
        .send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n${extra}\r\n`)
        .untilClosed();
    expect(await upgrade("")).toMatch(/^HTTP\/1\.1 403 /);
    expect(await upgrade(`E2b-Traffic-Access-Token: ${OTHER}\r\n`)).toMatch(/^HTTP\/1\.1 403 /);
    expect(seen).toEqual([]);
    expect(await upgrade(`E2b-Traffic-Access-Token: ${TOKEN}\r\n`)).toMatch(/^HTTP\/1\.1 101 .*hello$/s);
    expect(seen.flat().join()).not.toMatch(/traffic-access/i);
  });

  test("the agent's port is left to the agent's own token", async () => {
    await using scene = await worldWith({ ...PRIVATE, hostTemplate: "masked", tlsPorts: new Set([AGENT_PORT]) }, reach);
    expect((await fetchThrough(scene.world.port, AGENT_PORT)).body.toString()).toBe("served");
    expect(scene.seen[0]).toContain(hostOf(AGENT_PORT));
  });
});

test("no way of asking goes around the token", async () => {
  await using scene = await worldWith(PRIVATE);
  const { world, seen } = scene;
  const right = `E2b-Traffic-Access-Token: ${TOKEN}\r\n`;
  const byHeader = (port: string | number) => `Host: sandbox.skerry.test\r\nE2b-Sandbox-Id: ${SANDBOX_ID}\r\nE2b-Sandbox-Port: ${port}\r\n`;
  const attempts: [string, string, number][] = [
    ["the shared host", `GET / HTTP/1.1\r\n${byHeader(3000)}`, 403],
    ["localhost", `GET / HTTP/1.1\r\n${byHeader(3000).replace("sandbox.skerry.test", "localhost")}`, 403],
    [
      "the agent's port in a header",
      `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nE2b-Sandbox-Id: ${SANDBOX_ID}\r\nE2b-Sandbox-Port: 49983\r\n`,
      403,
    ],
    ["two ports", `GET / HTTP/1.1\r\n${byHeader(49983)}E2b-Sandbox-Port: 3000\r\n`, 400],
    ["a list of ports", `GET / HTTP/1.1\r\n${byHeader("49983,3000")}`, 400],
    ["a port that wraps around", `GET / HTTP/1.1\r\n${byHeader(65536 + 3000)}`, 400],
    ["a port with a zero", `GET / HTTP/1.1\r\nHost: ${hostOf(3000).replace("3000", "03000")}\r\n`, 400],
    ["a hexadecimal port", `GET / HTTP/1.1\r\n${byHeader("0xbb8")}`, 400],
    ["two hosts", `GET / HTTP/1.1\r\nHost: ${hostOf(AGENT_PORT)}\r\nHost: ${hostOf(3000)}\r\n`, 400],
    ["another host in the URL", `GET http://${hostOf(3000)}/ HTTP/1.1\r\nHost: ${hostOf(AGENT_PORT)}\r\n`, 400],
    ["the agent's host with a port", `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}:49983\r\n`, 403],
    ["a forwarded host", `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nX-Forwarded-Host: ${hostOf(AGENT_PORT)}\r\n`, 403],
    ["the token twice", `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n${right}${right}`, 403],
    ["a wrong one before it", `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nE2b-Traffic-Access-Token: x\r\n${right}`, 403],
    ["the agent's header", `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nX-Access-Token: ${TOKEN}\r\n`, 403],
    ["a bearer", `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nAuthorization: Bearer ${TOKEN}\r\n`, 403],
    ["a cookie", `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nCookie: e2b-traffic-access-token=${TOKEN}\r\n`, 403],
    ["the query", `GET /?e2b-traffic-access-token=${TOKEN} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n`, 403],
    ["a preflight", `OPTIONS / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nOrigin: https://x\r\nAccess-Control-Request-Method: PUT\r\n`, 403],
    ["a trailer", `POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nTransfer-Encoding: chunked\r\nTrailer: E2b-Traffic-Access-Token\r\n`, 403],
    ["CONNECT", `CONNECT localhost:3000 HTTP/1.1\r\nHost: ${hostOf(AGENT_PORT)}\r\n`, 405],
  ];
  for (const [name, head, status] of attempts) {
    const body = head.startsWith("POST") ? `0\r\n${right}\r\n` : "";
    const client = new RawClient(world.port).send(`${head}Connection: close\r\n\r\n${body}`);
    expect([name, (await client.untilClosed()).slice(9, 12)]).toEqual([name, String(status)]);
  }
  expect(seen).toEqual([]);
});

test("a second request of the same connection needs the token again", async () => {
  await using scene = await worldWith(PRIVATE);
  const request = (extra: string) => `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n${extra}\r\n`;
  const client = new RawClient(scene.world.port).send(request(`E2b-Traffic-Access-Token: ${TOKEN}\r\n`) + request("Connection: close\r\n"));
  const answers = await client.untilClosed();
  expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 403"]);
});

test("refused tokens leave a trace in the log, without the tokens", async () => {
  using log = logToFile();
  await using scene = await worldWith(PRIVATE, "direct", { logger: log.logger });
  const ask = (token: string) =>
    fetchThrough(scene.world.port, 3000, { headers: { host: hostOf(3000), "e2b-traffic-access-token": token } });
  for (const token of ["", OTHER, OTHER, TOKEN]) await ask(token);
  const lines = log
    .read()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { sandbox_id: SANDBOX_ID, port: 3000, reason: "token missing", client_address: expect.stringContaining("127.0.0.1") },
    { sandbox_id: SANDBOX_ID, port: 3000, reason: "token invalid" },
  ]);
  expect(log.read()).not.toMatch(new RegExp(`${TOKEN}|${OTHER}`));
});

test("a browser gets a page", async () => {
  await using scene = await worldWith(PRIVATE);
  const headers = { host: hostOf(3000), "user-agent": "Mozilla/5.0 Chrome/140.0", accept: "text/html" };
  const page = await fetchThrough(scene.world.port, 3000, { headers });
  expect([page.status, page.headers["content-type"]]).toEqual([403, "text/html; charset=utf-8"]);
  expect(page.body.toString()).toContain("<h1>Missing Traffic Access Token</h1>");
});

test("a masked Host is what servers see, for upgrades too; the client's is in X-Forwarded-Host", async () => {
  await using scene = await worldWith({ hostTemplate: "localhost:${PORT}", tlsPorts: new Set() });
  const { world, seen } = scene;
  const headers = { host: `${hostOf(3000)}:8080`, "x-forwarded-host": "evil" };
  expect((await fetchThrough(world.port, 3000, { headers })).status).toBe(200);
  await new RawClient(world.port)
    .send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`)
    .until("hello");
  const hostsOf = (raw: string[] = []) => raw.filter((_, at) => /host$/i.test(raw[at - (at % 2)] ?? ""));
  expect(hostsOf(seen[0])).toEqual(["Host", "localhost:3000", "X-Forwarded-Host", `${hostOf(3000)}:8080`]);
  expect(hostsOf(seen[1])).toEqual(["Host", "localhost:3000", "X-Forwarded-Host", hostOf(3000)]);
});

describe.each<Reach>(["direct", "connect"])("a port that speaks TLS over a %s dial", (reach) => {
  async function secure(handle: (server: TlsServer) => void) {
    const scene = await worldWith({ tlsPorts: new Set([3443, 3000, 3999]) }, reach);
    const stack = new AsyncDisposableStack();
    stack.use(scene);
    const server = createTlsServer(TEST_CERTIFICATE);
    handle(server);
    scene.world.sandboxes.open(SANDBOX_ID, 3443, await listen(server, stack));
    return { world: scene.world, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }

  test("is reached with TLS, with the name of the client's Host, and large bodies arrive whole in both directions", async () => {
    await using scene = await secure((server) => {
      server.on("request", async (req, res) => {
        const hash = createHash("sha256");
        for await (const chunk of req) hash.update(chunk as Buffer);
        res.setHeader("X-Name", String((req.socket as { servername?: string | false }).servername));
        res.setHeader("X-Sum", hash.digest("hex"));
        res.end(Buffer.alloc(3_000_000, "y"));
      });
    });
    const body = Buffer.alloc(3_000_000, "x");
    const answer = await fetchThrough(scene.world.port, 3443, { method: "PUT", body });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-name"]).toBe(hostOf(3443));
    expect(answer.headers["x-sum"]).toBe(createHash("sha256").update(body).digest("hex"));
    expect(answer.body.equals(Buffer.alloc(3_000_000, "y"))).toBe(true);
    await waitFor(() => (scene.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
  });

  test("upgrades work, and a sandbox that ends resets them", async () => {
    await using scene = await secure((server) => {
      server.on("upgrade", (_req, socket) => {
        socket.on("error", () => {});
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
        socket.pipe(socket);
      });
    });
    const client = new RawClient(scene.world.port);
    client.send(`GET / HTTP/1.1\r\nHost: ${hostOf(3443)}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
    await client.until("101");
    await client.send("ping").until("ping");
    scene.world.sandboxes.kill(SANDBOX_ID);
    await client.closed;
    expect(client.error?.message).toBe("read ECONNRESET");
  });

  test("an answer that breaks off is not taken for a whole one", async () => {
    await using scene = await secure((server) => {
      server.on("request", (_req, res) => res.writeHead(200, { "Content-Length": "10" }).write("half"));
    });
    const client = new RawClient(scene.world.port).send(`GET / HTTP/1.1\r\nHost: ${hostOf(3443)}\r\n\r\n`);
    await client.until("half");
    scene.world.sandboxes.kill(SANDBOX_ID);
    await client.closed;
    expect(client.error?.message).toBe("read ECONNRESET");
  });

  test("a server without TLS, and one that closes at once, count as closed ports", async () => {
    await using scene = await secure(() => {});
    await scene.world.serveTcp(3999, (socket) => socket.end());
    for (const port of [3000, 3999]) {
      const answer = await fetchThrough(scene.world.port, port);
      expect([answer.status, answer.body.toString()]).toEqual([502, expect.stringContaining("port is not open")]);
    }
    await waitFor(() => (scene.world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
  });
});
