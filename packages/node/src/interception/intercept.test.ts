import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { createSecureContext, TLSSocket as ServerSocket, type TLSSocket, connect as tlsConnect } from "node:tls";
import { Secret } from "@skerry/base";
import { afterEach, beforeAll, expect, it } from "vitest";
import { Authority } from "./authority.ts";
import { type AddedHeaders, intercept } from "./intercept.ts";

const HOST = "api.example.test";
const SECRET = "s3cret-value";

let internet: Authority;
let own: Authority;
beforeAll(async () => {
  [internet, own] = (await Promise.all(["internet", "own"].map((seed) => Authority.fromSeed(new Secret(seed))))) as [Authority, Authority];
});

const stack: AsyncDisposableStack[] = [];
afterEach(async () => {
  for (const one of stack.splice(0)) await one.disposeAsync();
});

interface World {
  /** What the host received. */
  readonly seen: { method: string; url: string; headers: string[]; body: string }[];
  readonly refused: string[];
  readonly host: Server;
  added: AddedHeaders;
  open(options?: { ca?: string; alpn?: string[] }): Promise<TLSSocket>;
  readonly hostSockets: Socket[];
}

async function world({ certificateFor = HOST, issuer = internet }: { certificateFor?: string; issuer?: Authority } = {}): Promise<World> {
  const disposables = new AsyncDisposableStack();
  stack.push(disposables);
  const seen: World["seen"] = [];
  const refused: string[] = [];
  const hostSockets: Socket[] = [];
  const host = createServer(async (request: IncomingMessage, response) => {
    const body = (await request.toArray()).join("");
    seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.rawHeaders, body });
    response.writeHead(200, { "Alt-Svc": 'h3=":443"', "X-Host": "yes" });
    response.end(`answer to ${request.url}`);
  });
  const leaf = await issuer.leafFor(certificateFor);
  const far = createTcpServer((socket) => {
    hostSockets.push(socket);
    socket.on("error", () => {});
    const tls = new ServerSocket(socket, { isServer: true, secureContext: createSecureContext({ key: leaf.key, cert: leaf.certificate }) });
    tls.on("error", () => {});
    host.emit("connection", tls);
  });
  far.listen(0, "127.0.0.1");
  await once(far, "listening");
  disposables.defer(() => void far.close());
  const it: { added: AddedHeaders } = { added: { kind: "headers", headers: { Authorization: `Bearer ${SECRET}`, "X-Two": "2" } } };
  const near = createTcpServer(async (client) => {
    client.on("error", () => {});
    await intercept({
      client,
      host: HOST,
      leaf: await own.leafFor(HOST),
      added: () => it.added,
      dial: async () => connect((far.address() as AddressInfo).port, "127.0.0.1"),
      trust: { context: createSecureContext({ ca: internet.certificate }) },
      onRefused: (why) => refused.push(why),
    });
  });
  near.listen(0, "127.0.0.1");
  await once(near, "listening");
  disposables.defer(() => void near.close());
  return Object.assign(it, {
    seen,
    refused,
    host,
    hostSockets,
    async open({ ca = own.certificate, alpn = ["h2", "http/1.1"] } = {}) {
      const port = (near.address() as AddressInfo).port;
      const socket = tlsConnect({ port, host: "127.0.0.1", servername: HOST, ca, ALPNProtocols: alpn });
      disposables.defer(() => void socket.destroy());
      await once(socket, "secureConnect");
      return socket;
    },
  });
}

/** Sends text, and returns what came until the connection ended, or until `until`. */
async function ask(socket: TLSSocket, text: string, until?: string): Promise<string> {
  let received = "";
  socket.on("error", () => {});
  socket.write(text);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    received += chunk;
    if (until !== undefined && received.includes(until)) break;
  }
  return received;
}

const valuesOf = (headers: readonly string[], name: string) =>
  headers.flatMap((header, i) => (i % 2 === 0 && header.toLowerCase() === name ? [headers[i + 1]] : []));

it("adds the headers in place of the client's, and shows the client none of them", async () => {
  const { open, seen } = await world();
  const socket = await open();
  expect(socket.alpnProtocol).toBe("http/1.1");
  const head = `POST /a?b=1 HTTP/1.1\r\nHost: ${HOST}\r\nauthorization: mine\r\nAuthorization: too\r\nX-Keep: a\r\n`;
  const hops = "Connection: close, x-hop\r\nX-Hop: 1\r\nProxy-Authorization: p\r\nExpect: 100-continue\r\n";
  const answer = await ask(socket, `${head}${hops}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  expect(answer).toContain("answer to /a?b=1");
  expect(answer).toContain("X-Host: yes");
  expect(answer.toLowerCase()).not.toContain("alt-svc");
  expect(answer).not.toContain(SECRET);
  expect(seen).toHaveLength(1);
  const [{ method = "", url = "", headers = [], body = "" } = {}] = seen;
  expect([method, url, body]).toEqual(["POST", "/a?b=1", "hello"]);
  expect(valuesOf(headers, "authorization")).toEqual([`Bearer ${SECRET}`]);
  expect([valuesOf(headers, "x-two"), valuesOf(headers, "x-keep"), valuesOf(headers, "host")]).toEqual([["2"], ["a"], [HOST]]);
  for (const gone of ["x-hop", "proxy-authorization", "expect"]) expect(valuesOf(headers, gone)).toEqual([]);
});

it("sends several requests over one connection to the host, each with the headers of its time", async () => {
  const it = await world();
  const socket = await it.open();
  expect(await ask(socket, `GET /1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, "answer to /1")).toContain("200 OK");
  it.added = { kind: "headers", headers: { Authorization: "Bearer next" } };
  expect(await ask(socket, `PUT /2 HTTP/1.1\r\nHost: ${HOST.toUpperCase()}:443\r\nContent-Length: 2\r\n\r\nhi`, "answer to /2")).toContain(
    "200",
  );
  expect(it.hostSockets).toHaveLength(1);
  expect(it.seen.map(({ headers }) => valuesOf(headers, "authorization")[0])).toEqual([`Bearer ${SECRET}`, "Bearer next"]);
  it.added = { kind: "none" };
  expect(await ask(socket, `GET /3 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toMatch(/^HTTP\/1.1 421 /);
  expect(it.seen).toHaveLength(2);
});

it.each([
  ["another Host", "GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n", 421],
  ["two of them", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: evil.example.test\r\n\r\n`, 421],
  ["another port", `GET / HTTP/1.1\r\nHost: ${HOST}:8443\r\n\r\n`, 421],
  ["a whole URL", `GET https://evil.example.test/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["TRACE", `TRACE / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
])("refuses a request with %s", async (_what, text, status) => {
  const { open, seen, refused } = await world();
  expect(await ask(await open(), text)).toContain(`HTTP/1.1 ${status} `);
  expect(seen).toEqual([]);
  expect(refused).toHaveLength(1);
});

it.each([
  ["two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"],
  ["a length and chunks", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["a folded line", "X: a\r\n b\r\n\r\n"],
  ["CONNECT", "\r\n"],
])("ends a connection with %s", async (what, rest) => {
  const { open, seen } = await world();
  const method = what === "CONNECT" ? "CONNECT evil.example.test:443" : "POST /";
  await ask(await open(), `${method} HTTP/1.1\r\nHost: ${HOST}\r\n${rest}`);
  expect(seen).toEqual([]);
});

it("sends nothing when a header has no value", async () => {
  const it = await world();
  it.added = { kind: "unavailable", why: "the secret x does not exist" };
  expect(await ask(await it.open(), `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toMatch(
    /^HTTP\/1.1 502 [\s\S]*the secret x does not exist/,
  );
  expect(it.hostSockets).toEqual([]);
});

it.each(["name", "issuer"])("sends nothing to a host whose certificate has another %s", async (what) => {
  const it = await world(what === "name" ? { certificateFor: "other.example.test" } : { issuer: own });
  expect(await ask(await it.open(), `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toMatch(/^HTTP\/1.1 502 /);
  expect(it.seen).toEqual([]);
  expect(it.refused).toHaveLength(1);
});

it("ends an idle connection when the host ends its own", async () => {
  const it = await world();
  const socket = await it.open();
  await ask(socket, `GET /1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, "answer to /1");
  const closed = once(socket, "close");
  for (const hostSocket of it.hostSockets) hostSocket.destroy();
  await closed;
});

it("passes a WebSocket on, with the headers", async () => {
  const it = await world();
  const offered: string[][] = [];
  it.host.on("upgrade", (request: IncomingMessage, socket) => {
    offered.push(request.rawHeaders);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello ");
    socket.pipe(socket);
  });
  const socket = await it.open();
  const request = `GET /ws HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n`;
  const answer = await ask(socket, `${request}ping`, "ping");
  expect(answer).toMatch(/^HTTP\/1\.1 101 [\s\S]*Upgrade: websocket\r\n[\s\S]*\r\nhello ping$/);
  expect(valuesOf(offered[0] ?? [], "authorization")).toEqual([`Bearer ${SECRET}`]);
  expect(valuesOf(offered[0] ?? [], "sec-websocket-key")).toEqual(["k"]);
});

it("refuses clients that do not trust it, or speak HTTP/2 alone", async () => {
  const it = await world();
  await expect(it.open({ ca: internet.certificate })).rejects.toThrow(/verif|issuer/);
  await expect(it.open({ alpn: ["h2"] })).rejects.toThrow();
  expect(it.hostSockets).toEqual([]);
});
