// Later requests of a client's connection share a connection to the sandbox. Here servers and clients try to bring an answer to another
// request than its own.

import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient, waitFor } from "./client.ts";
import { Faults } from "./faults.ts";
import { createWorld, SANDBOX_ID, type World } from "./parts.ts";

const KEPT = { upstreamIdleMs: 60_000 };
const get = (path: string, port = 3000, method = "GET") => `${method} ${path} HTTP/1.1\r\nHost: ${hostOf(port)}\r\n\r\n`;
const ok = (text: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;

interface Asked {
  readonly socket: Socket;
  /** The number of the connection, from 1. */
  readonly connection: number;
  readonly path: string;
}

/** A server whose author decides what each request is answered with. Returns the paths that each connection carried. */
async function serveRaw(world: World, onRequest: (asked: Asked) => void): Promise<string[][]> {
  const carried: string[][] = [];
  await world.serveTcp(3000, (socket) => {
    const paths: string[] = [];
    const connection = carried.push(paths);
    socket.setNoDelay().on("data", (data) => {
      for (const [, path = ""] of data.toString("latin1").matchAll(/^(?:GET|HEAD|POST) (\S+) HTTP/gm)) {
        paths.push(path);
        onRequest({ socket, connection, path });
      }
    });
    socket.on("end", () => socket.end());
  });
  return carried;
}

const nothingOpen = (world: World) =>
  waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");

/** The second request of a client is the first that leaves its connection open. */
async function warmUp(client: RawClient): Promise<void> {
  client.send(get("/first"));
  await client.until("</first>");
}

test("GET and HEAD requests share a connection; other methods, ports and clients do not, and none outlives its client", async () => {
  await using world = await createWorld("direct", KEPT);
  const carried = await serveRaw(world, ({ socket, path }) => {
    if (path === "/head") socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    else if (path === "/none") socket.write("HTTP/1.1 204 No Content\r\n\r\n");
    else if (path === "/same") socket.write("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
    else if (path === "/parts")
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\n</p\r\n6\r\narts>\n\r\n0\r\nX: y\r\n\r\n");
    else socket.write(ok(`<${path}>`));
  });
  await world.serve(3001, (_req, res) => res.end("<other>"));
  const [one, two] = [new RawClient(world.port), new RawClient(world.port)];
  await warmUp(one);
  await warmUp(two);
  for (const [request, end] of [
    [get("/a"), "</a>"],
    [get("/head", 3000, "HEAD"), "Content-Length: 5\r\n"],
    [get("/none"), "204 No Content\r\n"],
    [get("/same"), "304 Not Modified\r\n"],
    [get("/parts"), "X: y\r\n\r\n"],
    [get("/b"), "</b>"],
    [get("/post", 3000, "POST"), "</post>"],
    [get("/c"), "</c>"],
    [get("/", 3001), "<other>"],
    [get("/d"), "</d>"],
  ] as const) {
    await one.send(request).until(end);
  }
  await two.send(get("/e")).until("</e>");
  expect(carried).toEqual([["/first"], ["/first"], ["/a", "/head", "/none", "/same", "/parts", "/b", "/c"], ["/post"], ["/d"], ["/e"]]);
  for (const client of [one, two]) client.socket.destroy();
  await nothingOpen(world);
});

test("a connection that is not used again closes", async () => {
  await using world = await createWorld("direct", { upstreamIdleMs: 400 });
  const carried = await serveRaw(world, ({ socket, path }) => socket.write(ok(`<${path}>`)));
  const client = new RawClient(world.port).send(get("/first") + get("/second"));
  await client.until("</second>");
  await nothingOpen(world);
  await client.send(get("/third")).until("</third>");
  expect(carried.length).toBeGreaterThan(1);
  expect(client.error).toBeUndefined();
});

/** What a server sends after the end of its answer. */
const EXCESS: readonly { readonly name: string; readonly excess: string }[] = [
  { name: "junk", excess: "JUNK" },
  { name: "another answer", excess: ok("forged") },
  { name: "the start of another answer", excess: "HTTP/1.1 200 OK\r\nContent-Len" },
  { name: "empty lines", excess: "\r\n\r\n" },
  { name: "an answer after an empty line", excess: `\r\n${ok("forged")}` },
  { name: "a hundred answers", excess: ok("forged").repeat(100) },
];
/** Complete answers to a GET of "/second". */
const ANSWERS: readonly string[] = [
  ok("</second>"),
  "HTTP/1.1 204 No Content\r\nX: </second>\r\n\r\n",
  "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\nX: </second>\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n</second>\r\n0\r\n\r\n",
];

test.each(EXCESS)("what follows an answer at once reaches no other request: $name", async ({ excess }) => {
  using faults = new Faults();
  for (const way of ["in its packet", "in a packet of its own"]) {
    for (const answer of ANSWERS) {
      await using world = await createWorld("direct", KEPT);
      await serveRaw(world, ({ socket, connection, path }) => {
        if (path !== "/second" || connection > 2) socket.write(ok(`<${path}>`));
        else if (way === "in its packet") socket.write(answer + excess);
        else {
          socket.write(answer);
          socket.write(excess);
        }
      });
      // The next requests wait for their turn when the excess arrives.
      const client = new RawClient(world.port).send(get("/first") + get("/second") + get("/third") + get("/fourth"));
      await Promise.race([client.until("</fourth>"), client.closed]);
      expect([client.received.includes("forged"), client.received.includes("JUNK"), faults.seen]).toEqual([false, false, []]);
      // Blank lines carry nothing. Everything else costs the server its connection.
      expect(client.received.match(/<\/\w+>/g), answer).toEqual(["</first>", "</second>", "</third>", "</fourth>"]);
      client.socket.destroy();
    }
  }
});

test.each(EXCESS)(
  "what comes while a connection is kept closes it, and reaches neither its client nor another: $name",
  async ({ excess }) => {
    using faults = new Faults();
    await using world = await createWorld("direct", KEPT);
    let kept: Socket | undefined;
    const carried = await serveRaw(world, ({ socket, path }) => {
      kept = socket;
      socket.write(ok(`<${path}>`));
    });
    const client = new RawClient(world.port);
    await warmUp(client);
    await client.send(get("/second")).until("</second>");
    await waitFor(() => (world.sandboxes.sockets.size === 1 ? true : undefined), "the first connection to close");
    kept?.write(excess);
    await nothingOpen(world);
    const other = new RawClient(world.port);
    await warmUp(other);
    await client.send(get("/third")).until("</third>");
    expect([client.received.includes("forged"), other.received.includes("forged"), faults.seen]).toEqual([false, false, []]);
    expect(carried).toEqual([["/first"], ["/second"], ["/first"], ["/third"]]);
  },
);

test("an answer that comes after its client has gone reaches nobody", async () => {
  using faults = new Faults();
  await using world = await createWorld("direct", KEPT);
  let late: Socket | undefined;
  const carried = await serveRaw(world, ({ socket, path }) => {
    if (path === "/late") late = socket;
    else socket.write(ok(`<${path}>`));
  });
  const client = new RawClient(world.port);
  await warmUp(client);
  await client.send(get("/second")).until("</second>");
  client.send(get("/late"));
  await waitFor(() => late, "the request");
  client.socket.destroy();
  late?.write(ok("forged"));
  await nothingOpen(world);
  const other = new RawClient(world.port);
  await warmUp(other);
  await other.send(get("/second")).until("</second>");
  expect([other.received.includes("forged"), faults.seen]).toEqual([false, []]);
  expect(carried).toEqual([["/first"], ["/second", "/late"], ["/first"], ["/second"]]);
});

test.each([
  ["says so", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n</second>"],
  ["speaks HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n</second>"],
  ["ends the body with the connection", "HTTP/1.1 200 OK\r\n\r\n</second>"],
])("a connection is not kept if the server %s", async (_name, answer) => {
  await using world = await createWorld("direct", KEPT);
  const carried = await serveRaw(world, ({ socket, path }) => {
    if (path === "/second") socket.end(answer);
    else socket.write(ok(`<${path}>`));
  });
  const client = new RawClient(world.port);
  await warmUp(client);
  await client.send(get("/second")).until("</second>");
  await client.send(get("/third")).until("</third>");
  expect(carried).toEqual([["/first"], ["/second"], ["/third"]]);
});

test("a server that leaves at a later request gets it once more on another connection, and no more often", async () => {
  await using world = await createWorld("direct", KEPT);
  const carried = await serveRaw(world, ({ socket, connection, path }) => {
    if (path === "/once" && connection === 2) socket.destroy();
    else if (path === "/always") socket.resetAndDestroy();
    else if (path === "/part") socket.end("HTTP/1.1 200 OK\r\nContent-Le");
    else socket.write(ok(`<${path}>`));
  });
  const client = new RawClient(world.port);
  await warmUp(client);
  await client.send(get("/second")).until("</second>");
  await client.send(get("/once")).until("</once>");
  await client.send(get("/third")).until("</third>");
  await client.send(get("/part")).until("port is not open");
  client.received = "";
  await client.send(get("/fourth")).until("</fourth>");
  await client.send(get("/fifth")).until("</fifth>");
  await client.send(get("/always")).until("port is not open");
  expect(carried).toEqual([["/first"], ["/second", "/once"], ["/once", "/third", "/part"], ["/fourth", "/fifth", "/always"], ["/always"]]);
});

test("a request on a kept connection has all checks of a first one", async () => {
  await using world = await createWorld("direct", KEPT);
  const carried = await serveRaw(world, ({ socket, path }) => socket.write(ok(`<${path}>`)));
  const find = world.routes.find;
  let run = "1";
  let tokenDigest: Uint8Array | undefined;
  world.routes.find = async (...asked) => {
    const answer = await find(...asked);
    if (answer.kind !== "running") return answer;
    return { kind: "running", route: { ...answer.route, run, ...(tokenDigest && { ingress: { tokenDigest, tlsPorts: new Set() } }) } };
  };
  const client = new RawClient(world.port);
  await warmUp(client);
  await client.send(get("/second")).until("</second>");
  tokenDigest = new Uint8Array(32);
  await client.send(get("/third")).until('"code":403');
  tokenDigest = undefined;
  // The sandbox was paused and resumed.
  run = "2";
  await client.send(get("/fourth")).until("</fourth>");
  expect(carried).toEqual([["/first"], ["/second"], ["/fourth"]]);
  world.sandboxes.kill(SANDBOX_ID);
  await client.send(get("/fifth")).until("was not found");
  expect((await fetchThrough(world.port, 3000)).status).toBe(502);
  expect(carried).toHaveLength(3);
});
