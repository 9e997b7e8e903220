import { expect, test } from "vitest";
import { hostOf, RawClient, waitFor } from "./client.ts";
import { logToFile } from "./log-file.ts";
import { createWorld } from "./parts.ts";

const GET = `GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`;

test("connections over the limit are refused with one line in the log; idle ones make room, busy ones stay", async () => {
  using log = logToFile();
  await using world = await createWorld("direct", { maxConnections: 3, maxSandboxConnections: 10, logger: log.logger });
  await world.serve(3000, (req, res) => (req.url === "/busy" ? res.write("busy") : res.end("ok")));
  const busy = new RawClient(world.port).send(GET.replace("/", "/busy"));
  await busy.until("busy");
  const idle = [new RawClient(world.port).send(GET), new RawClient(world.port).send(GET)];
  for (const client of idle) await client.until("ok");
  await new RawClient(world.port).untilClosed();
  for (const client of idle) await client.untilClosed();
  const others = [0, 1].map(() => new RawClient(world.port).send(GET.replace("/", "/busy")));
  for (const client of others) await client.until("busy");
  for (let n = 0; n < 5; n++) await new RawClient(world.port).untilClosed();
  expect(log.read().match(/too many connections/g)).toHaveLength(1);
  expect(log.read()).toContain('"max_connections":3');
  for (const client of [busy, ...others]) {
    expect(client.ended).toBe(false);
    client.socket.destroy();
  }
});

test("a connection without a first request is closed early, one that has had its request is not", async () => {
  await using world = await createWorld("direct", { firstRequestTimeoutMs: 1_000 });
  await world.serve(3000, (_req, res) => res.end("ok"));
  const good = new RawClient(world.port).send(GET);
  await good.until("ok");
  const silent = new RawClient(world.port);
  const slow = new RawClient(world.port).send("GET / HT");
  for (const client of [silent, slow]) await waitFor(() => (client.socket.destroyed ? true : undefined), "the end");
  good.received = "";
  await good.send(GET).until("ok");
  good.socket.destroy();
});

test("a later request whose head never ends is a 408; a body that comes slowly is waited for, and so is an answer", async () => {
  await using world = await createWorld("direct", { headTimeoutMs: 200 });
  await world.serve(3000, async (req, res) => {
    let text = "";
    for await (const chunk of req) text += chunk;
    res.end(`got ${text}`);
  });
  const body = new RawClient(world.port).send(GET.replace("GET", "POST").replace("\r\n\r\n", "\r\nContent-Length: 2\r\n\r\na"));
  const slow = new RawClient(world.port).send(GET);
  await slow.until("got ");
  slow.received = "";
  slow.send("GET / HTTP/1.1\r\nHost: x\r\nX-Endless: ");
  expect(await slow.untilClosed()).toMatch(/^HTTP\/1\.1 408 /);
  await body.send("b").until("got ab");
  body.socket.destroy();
});
