import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient, waitFor } from "./client.ts";
import { Faults } from "./faults.ts";
import { createWorld, SANDBOX_ID, type World } from "./parts.ts";

const HOST = `Host: ${hostOf(3000)}\r\n`;
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`;
const UPGRADE = `GET /up HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;

/** Every route lookup waits until `go` is called. */
function holdLookups(world: World): () => void {
  const find = world.routes.find;
  const held = Promise.withResolvers<void>();
  world.routes.find = async (sandboxId) => {
    await held.promise;
    return find(sandboxId);
  };
  return held.resolve;
}

test.each([
  ["a CONNECT", "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n", undefined],
  ["an upgrade that is refused", UPGRADE.replace(HOST, "Host: nowhere\r\n"), undefined],
  ["an upgrade that is answered with 200", UPGRADE, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"],
  ["an upgrade that is agreed to", UPGRADE, "HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
  ["an upgrade that breaks off", UPGRADE, ""],
])("%s behind a request without an answer resets the connection and nothing else", async (_name, second, answer) => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  const seen: string[] = [];
  await world.serveTcp(3000, (socket) =>
    socket.once("data", (head) => {
      seen.push(String(head).slice(0, 7));
      if (String(head).startsWith("GET /up")) socket.end(answer ?? "");
    }),
  );
  const go = holdLookups(world);
  const client = new RawClient(world.port).send(GET + second);
  await sleep(50);
  go();
  await client.closed;
  await sleep(50);
  expect([client.error?.message, client.received, faults.seen]).toEqual(["read ECONNRESET", "", []]);
  expect(seen).not.toContain("GET /up");
  await waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
  expect((await fetchThrough(world.port, 3001)).status).toBe(502);
});

test("an upgrade behind a request that was answered is served", async () => {
  await using world = await createWorld("direct");
  await world.serveTcp(3000, (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")));
  const client = new RawClient(world.port).send(GET);
  await client.until("ok");
  client.received = "";
  expect(await client.send(UPGRADE).untilClosed()).toContain("ok");
});

test.each([
  [0, 51],
  [60_000, 2],
])(
  "requests of one connection take turns: one stream to the sandbox (kept for %i ms), answers in order, all closed with the client",
  async (upstreamIdleMs, dials) => {
    using faults = new Faults();
    await using world = await createWorld("direct", { upstreamIdleMs });
    let hangs = false;
    let most = 0;
    await world.serve(3000, (req, res) => {
      most = Math.max(most, world.sandboxes.sockets.size);
      hangs ||= req.url === "/hang";
      if (req.url !== "/hang") setTimeout(() => res.end(`<${req.url}>`), 2);
    });
    const paths = Array.from({ length: 50 }, (_, n) => `/${n}`);
    const client = new RawClient(world.port);
    for (const path of [...paths, "/hang", "/never"]) client.send(`GET ${path} HTTP/1.1\r\n${HOST}\r\n`);
    await client.until("</49>");
    expect(client.received.match(/<[^>]*>/g)).toEqual(paths.map((path) => `<${path}>`));
    await waitFor(() => (hangs ? true : undefined), "the request that hangs");
    client.socket.destroy();
    await waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
    expect([most, world.sandboxes.dials, faults.seen]).toEqual([1, dials, []]);
  },
);

test("a connection on which too many requests wait is reset", async () => {
  await using world = await createWorld("direct");
  const go = holdLookups(world);
  const client = new RawClient(world.port).send(GET.repeat(2_000));
  await client.closed;
  expect(client.error?.message).toMatch(/ECONNRESET|EPIPE/);
  go();
  expect(world.sandboxes.ports.has(SANDBOX_ID)).toBe(true);
});
