import { createHash, randomBytes } from "node:crypto";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { hostOf, RawClient, waitFor } from "./client.ts";
import { SANDBOX_ID } from "./parts.ts";
import { createTlsWorld, type TlsWorld } from "./tls-world.ts";

const get = (path = "/", port = 3000) => `GET ${path} HTTP/1.1\r\nHost: ${hostOf(port)}\r\n\r\n`;
const sha256 = (data: Buffer) => createHash("sha256").update(data).digest("hex");

/** Resolves when the raw connection is over, whether it ended or was reset. */
const untilOver = (client: RawClient) => waitFor(() => (client.ended || client.socket.destroyed ? true : undefined), "the end", 20_000);

test("a sandbox is reached by host name and by headers, with TLS 1.2 and 1.3 and nothing older", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (req, res) => res.end(`${req.method} ${req.url}`));
  const byHeaders = { host: "skerry.test", "e2b-sandbox-id": SANDBOX_ID, "e2b-sandbox-port": "3000" };
  expect((await tls.fetch(3000, { path: "/a" })).body.toString()).toBe("GET /a");
  expect((await tls.fetch(3000, { path: "/b", headers: byHeaders })).body.toString()).toBe("GET /b");
  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    const client = await tls.connect({ minVersion: version, maxVersion: version });
    expect(client.socket.getProtocol()).toBe(version);
    expect(client.socket.alpnProtocol).toBe("http/1.1");
    await client.send(get("/c")).until("GET /c");
    client.socket.destroy();
  }
  const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
  await expect(tls.connect(old)).rejects.toThrow(/protocol version|EPROTO/i);
});

test("bodies of any size pass unchanged in both directions", async () => {
  await using tls = await createTlsWorld();
  const body = randomBytes(20_000_000);
  await tls.world.serve(3000, async (req, res) => {
    if (req.method === "GET") return res.writeHead(200, { "content-length": body.length }).end(body);
    const hash = createHash("sha256");
    for await (const chunk of req) hash.update(chunk as Buffer);
    return res.end(hash.digest("hex"));
  });
  expect(sha256((await tls.fetch(3000)).body)).toBe(sha256(body));
  expect((await tls.fetch(3000, { method: "PUT", body })).body.toString()).toBe(sha256(body));
});

test("an upgraded connection carries bytes both ways, and its directions end one after the other", async () => {
  await using tls = await createTlsWorld();
  const server = await tls.world.serve(3000, (_req, res) => res.writeHead(426).end());
  server.on("upgrade", (_req, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    socket.on("data", (chunk: Buffer) => socket.write(`echo ${chunk}`));
    socket.on("end", () => socket.end("last words"));
  });
  const client = await tls.connect();
  client.send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  await client.until("101 Switching Protocols");
  await client.send("one").until("echo one");
  client.socket.end();
  await client.until("last words");
  await client.untilClosed();
  expect(client.error).toBeUndefined();
});

test("a sandbox that dies during its response resets the client", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (_req, res) => res.writeHead(200, { connection: "close" }).write("the beginning"));
  const client = await tls.connect();
  await client.send(get()).until("the beginning");
  tls.world.sandboxes.kill(SANDBOX_ID);
  await client.untilClosed();
  expect(client.error?.code).toBe("ECONNRESET");
});

test("a new certificate serves new connections, and open ones go on", async () => {
  await using tls = await createTlsWorld({ lookMs: 20 });
  await tls.world.serve(3000, (req, res) => (req.url === "/stream" ? res.write("begun") : res.end("ok")));
  const idle = await tls.connect();
  await idle.send(get()).until("ok");
  const busy = await tls.connect();
  await busy.send(get("/stream")).until("begun");
  expect(busy.serverName).toBe("first");
  await tls.make("second");
  tls.install("second");
  await waitFor(() => (tls.log().includes("the certificate was replaced") ? true : undefined), "the new certificate", 20_000);
  const next = await tls.connect();
  expect(next.serverName).toBe("second");
  idle.received = "";
  await idle.send(get()).until("ok");
  for (const client of [idle, busy, next]) {
    expect(client.ended).toBe(false);
    client.socket.destroy();
  }
});

test("a pair that can't be used is logged once, and the former one stays in use", async () => {
  await using tls = await createTlsWorld();
  const nameServed = async () => {
    const client = await tls.connect();
    const { serverName } = client;
    client.socket.destroy();
    return serverName;
  };
  await tls.make("second");
  const refusals = () => tls.log().split("the new certificate can't be used").length - 1;
  tls.install("second", "first");
  for (let n = 0; n < 3; n++) await tls.certificate.look();
  expect([await nameServed(), refusals()]).toEqual(["first", 1]);
  tls.installRubbish();
  for (let n = 0; n < 3; n++) await tls.certificate.look();
  expect([await nameServed(), refusals()]).toEqual(["first", 2]);
  tls.install("second");
  await tls.certificate.look();
  expect([await nameServed(), refusals()]).toEqual(["second", 2]);
  expect(tls.log()).not.toContain("PRIVATE KEY");
});

test("an edge does not start with a pair that can't be used, and says which files", async () => {
  const { CertificateFiles } = await import("../src/index.ts");
  const { createLogger } = await import("@skerry/base");
  const files = { certFile: "/nowhere/cert.pem", keyFile: "/nowhere/key.pem" };
  const opening = CertificateFiles.open(files, createLogger({ name: "edge", level: "error" }));
  await expect(opening).rejects.toThrow("the certificate /nowhere/cert.pem with the key /nowhere/key.pem can't be used: ENOENT");
});

test("a client that does not finish its handshake is closed, one that did is not", async () => {
  await using tls = await createTlsWorld({ limits: { handshakeTimeoutMs: 1_000 } });
  await tls.world.serve(3000, (_req, res) => res.end("ok"));
  const good = await tls.connect();
  const silent = new RawClient(tls.port);
  const slow = new RawClient(tls.port).send(Buffer.from("1603010200", "hex"));
  for (const client of [silent, slow]) await untilOver(client);
  await good.send(get()).until("ok");
  good.socket.destroy();
  expect(tls.log()).toContain("the handshake took too long");
});

test("of too many handshakes, the oldest ends", async () => {
  await using tls = await createTlsWorld({ limits: { handshakeTimeoutMs: 600_000, maxHandshakes: 2 } });
  const silent: RawClient[] = [];
  for (let n = 0; n < 4; n++) {
    const client = new RawClient(tls.port);
    await new Promise((resolve) => client.socket.once("connect", resolve));
    silent.push(client);
  }
  const [first, second, third, fourth] = silent as [RawClient, RawClient, RawClient, RawClient];
  for (const client of [first, second]) await untilOver(client);
  const good = await tls.connect();
  await untilOver(third);
  expect(fourth.socket.destroyed).toBe(false);
  for (const { socket } of [good, fourth]) socket.destroy();
});

test("plain HTTP on the TLS port, and TLS on the plain port, end without harm", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (_req, res) => res.end("ok"));
  const plain = new RawClient(tls.port).send(get());
  await untilOver(plain);
  expect(plain.received).not.toContain("HTTP/1.1");
  const wrong = connect({ host: "127.0.0.1", port: tls.world.port });
  await new Promise((resolve) => wrong.once("error", resolve));
  expect((await tls.fetch(3000)).body.toString()).toBe("ok");
});

test("both listeners share one limit of connections", async () => {
  await using tls = await createTlsWorld({ maxConnections: 2, maxSandboxConnections: 10 });
  await tls.world.serve(3000, (_req, res) => res.write("busy"));
  const plain = new RawClient(tls.world.port).send(get());
  await plain.until("busy");
  const secure = await tls.connect();
  await secure.send(get()).until("busy");
  await expect(tls.connect()).rejects.toThrow();
  await untilOver(new RawClient(tls.world.port));
  secure.socket.destroy();
  await untilServed(tls);
  plain.socket.destroy();
});

test("a connection leaves its place, however it ends", async () => {
  await using tls = await createTlsWorld({ maxConnections: 1 });
  const server = await tls.world.serve(3000, (_req, res) => res.end("ok"));
  server.on("upgrade", (_req, socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"));
  const ends: readonly (() => Promise<unknown>)[] = [
    async () => (await tls.connect()).socket.destroy(),
    async () => (await tls.connect()).send(get()).socket.end(),
    async () => (await tls.connect()).send("rubbish\r\n\r\n").until("400 Bad Request"),
    () => breakRecords(tls),
    async () => (await tls.connect()).send(get().replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).until("ok"),
    async () => (await tls.connect()).send(get().replace("\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")).socket.end(),
    async () => new RawClient(tls.port).send("no handshake").untilClosed(20_000),
    async () => new RawClient(tls.port).socket.resetAndDestroy(),
  ];
  for (const end of ends) {
    await untilServed(tls);
    // The connection of `untilServed` may still have the place.
    await expect.poll(() => end().then(() => "ended", String), { timeout: 20_000 }).toBe("ended");
  }
  await untilServed(tls);
});

/** Sends bytes on the TCP connection that are no record of its TLS connection. */
async function breakRecords(tls: TlsWorld): Promise<void> {
  const raw = new RawClient(tls.port);
  const client = await tls.connect({ socket: raw.socket });
  raw.socket.write(Buffer.alloc(100, 0x17));
  await waitFor(() => client.error, "the alert", 20_000);
}

/** The edge learns of the end of a connection a moment after its client. */
async function untilServed(tls: TlsWorld): Promise<void> {
  await expect.poll(() => tls.connect().then((client) => client.socket.destroy() && true, String), { timeout: 20_000 }).toBe(true);
}

test("an edge that closes resets connections and handshakes", async () => {
  await using tls = await createTlsWorld();
  await tls.world.serve(3000, (_req, res) => res.write("busy"));
  const busy = await tls.connect();
  await busy.send(get()).until("busy");
  const silent = new RawClient(tls.port);
  await new Promise((resolve) => silent.socket.once("connect", resolve));
  await tls.world.edge.close();
  await busy.untilClosed();
  await untilOver(silent);
  expect(busy.error?.code).toBe("ECONNRESET");
});
