import { AGENT_PORT } from "@skerry/wire";
import { expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient, waitFor } from "./client.ts";
import { logToFile } from "./log-file.ts";
import { createWorld, SANDBOX_ID } from "./parts.ts";

test("a sandbox has no more requests at a time than the limit; others, its agent, and later requests are served", async () => {
  await using world = await createWorld("direct", { maxSandboxConnections: 2 });
  const waiting = new Set<() => void>();
  await world.serve(3000, (req, res) => (req.url === "/hold" ? waiting.add(() => res.end("held")) : res.end("ok")));
  await world.serve(AGENT_PORT, (_req, res) => res.end("agent"));
  const server = await world.serve(3001, () => {});
  server.on("upgrade", (_req, socket) => {
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  });
  const held = fetchThrough(world.port, 3000, { path: "/hold" });
  const socket = new RawClient(world.port).send(`GET / HTTP/1.1\r\nHost: ${hostOf(3001)}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
  await socket.until("101");
  await waitFor(() => (waiting.size === 1 ? true : undefined), "the request that is held");
  const refused = await fetchThrough(world.port, 3000);
  expect([refused.status, refused.headers["retry-after"], JSON.parse(refused.body.toString())]).toEqual([
    429,
    "5",
    {
      sandboxId: SANDBOX_ID,
      message: "The sandbox has too many concurrent incoming connections (limit: 2)",
      connectionLimit: 2,
      code: 429,
    },
  ]);
  expect((await fetchThrough(world.port, AGENT_PORT)).body.toString()).toBe("agent");
  socket.socket.resetAndDestroy();
  await waitFor(() => (world.sandboxes.sockets.size === 1 ? true : undefined), "the end of the upgraded connection");
  // One after the other on one connection: each is over before the next one is counted.
  const client = new RawClient(world.port).send(`GET /${" HTTP/1.1\r\nHost: "}${hostOf(3000)}\r\n\r\n`.repeat(20));
  await waitFor(() => (client.received.match(/ok/g)?.length === 20 ? true : undefined), "all answers");
  expect(client.received).not.toContain("429");
  client.socket.destroy();
  for (const answer of waiting) answer();
  expect((await held).body.toString()).toBe("held");
});

test("a sandbox gets no more requests in a second than the limit; its agent and later requests are served, and the log has one line", async () => {
  using log = logToFile();
  let now = 0;
  await using world = await createWorld("direct", { maxSandboxRequestsPerSecond: 2, now: () => now, logger: log.logger });
  let served = 0;
  await world.serve(3000, (_req, res) => res.end(`${++served}`));
  await world.serve(AGENT_PORT, (_req, res) => res.end("agent"));
  const server = await world.serve(3001, () => {});
  let upgrades = 0;
  server.on("upgrade", (_req, socket) => {
    upgrades++;
    socket.destroy();
  });
  for (let n = 0; n < 4; n++) expect((await fetchThrough(world.port, 3000)).status).toBe(200);
  for (let n = 0; n < 10; n++) {
    const refused = await fetchThrough(world.port, 3000);
    expect([refused.status, refused.headers["retry-after"], JSON.parse(refused.body.toString())]).toEqual([
      429,
      "1",
      { sandboxId: SANDBOX_ID, message: "The sandbox has too many incoming requests (limit: 2 per second)", requestLimit: 2, code: 429 },
    ]);
  }
  const upgrade = new RawClient(world.port).send(`GET / HTTP/1.1\r\nHost: ${hostOf(3001)}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
  await upgrade.until("HTTP/1.1 429 ");
  upgrade.socket.destroy();
  expect([served, upgrades]).toEqual([4, 0]);
  expect((await fetchThrough(world.port, AGENT_PORT)).body.toString()).toBe("agent");
  expect(log.read().match(/too many requests/g)).toHaveLength(1);
  now += 1000;
  const later = [];
  for (let n = 0; n < 3; n++) later.push((await fetchThrough(world.port, 3000)).status);
  expect(later).toEqual([200, 200, 429]);
});

const OTHER_ID = "ibbbbbbbbbbbbbbbbbbbb";
const THIRD_ID = "icccccccccccccccccccc";

test("the sandboxes of a group share its limits, with a line in the log; another group has its own", async () => {
  using log = logToFile();
  await using world = await createWorld("direct", {
    maxGroupConnections: 2,
    maxGroupRequestsPerSecond: 3,
    now: () => 0,
    logger: log.logger,
    groups: (sandboxId) => (sandboxId === THIRD_ID ? "others" : "one"),
  });
  const waiting = new Set<() => void>();
  await world.serve(3000, (req, res) => (req.url === "/hold" ? waiting.add(() => res.end("held")) : res.end("ok")));
  const port = world.sandboxes.ports.get(SANDBOX_ID)?.get(3000) ?? 0;
  for (const id of [OTHER_ID, THIRD_ID]) world.sandboxes.open(id, 3000, port);
  const ask = (id: string, path = "/") => fetchThrough(world.port, 3000, { path, headers: { host: hostOf(3000, id) } });
  const held = [ask(SANDBOX_ID, "/hold"), ask(OTHER_ID, "/hold")];
  await waitFor(() => (waiting.size === 2 ? true : undefined), "the requests that are held");
  const refused = await ask(OTHER_ID);
  expect([refused.status, JSON.parse(refused.body.toString())]).toEqual([
    429,
    {
      sandboxId: OTHER_ID,
      message: "The team of the sandbox has too many concurrent incoming connections (limit: 2)",
      connectionLimit: 2,
      code: 429,
    },
  ]);
  expect((await ask(THIRD_ID)).status).toBe(200);
  for (const answer of waiting) answer();
  await Promise.all(held);
  await expect.poll(async () => (await ask(SANDBOX_ID)).status, { timeout: 30_000 }).toBe(200);
  const statuses = [];
  for (let n = 0; n < 6; n++) statuses.push((await ask(n % 2 === 0 ? SANDBOX_ID : OTHER_ID)).status);
  expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
  expect(JSON.parse((await ask(OTHER_ID)).body.toString())).toMatchObject({
    requestLimit: 3,
    message: expect.stringContaining("The team of"),
  });
  expect((await ask(THIRD_ID)).status).toBe(200);
  expect(log.read()).toContain("too many connections of the team");
  expect(log.read()).toContain("too many requests of the team");
});
