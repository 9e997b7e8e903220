import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { RelaySocket } from "./relay-socket.ts";

interface Pair extends AsyncDisposable {
  readonly relay: RelaySocket;
  /** The other end. */
  readonly peer: Socket;
}

async function createPair(): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay = new RelaySocket({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  relay.on("error", () => {});
  const [peer] = (await once(server, "connection")) as [Socket];
  peer.on("error", () => {});
  return {
    relay,
    peer,
    async [Symbol.asyncDispose]() {
      relay.destroy();
      peer.destroy();
      server.close();
    },
  };
}

/** A connected pair of plain sockets, to pour into. */
async function createSink(): Promise<AsyncDisposable & { to: Socket; from: Socket }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const from = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [to] = (await once(server, "connection")) as [Socket];
  for (const socket of [to, from]) socket.on("error", () => {});
  return {
    to,
    from,
    async [Symbol.asyncDispose]() {
      to.destroy();
      from.destroy();
      server.close();
    },
  };
}

test("works as an ordinary stream in both directions, and can be half-open", async () => {
  await using pair = await createPair();
  pair.relay.write("a");
  pair.relay.cork();
  pair.relay.write("b");
  pair.relay.write("c");
  pair.relay.uncork();
  pair.relay.end("d");
  let sent = "";
  for await (const chunk of pair.peer.iterator({ destroyOnReturn: false })) sent += chunk;
  expect(sent).toBe("abcd");
  pair.peer.end("answer");
  let got = "";
  for await (const chunk of pair.relay) got += chunk;
  expect(got).toBe("answer");
});

test("a reader that does not read stops the sender", async () => {
  await using pair = await createPair();
  const block = Buffer.alloc(1024 * 1024);
  for (let n = 0; n < 64; n++) pair.peer.write(block);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(pair.peer.writableLength).toBeGreaterThan(0);
  expect(pair.relay.readableLength).toBeLessThan(1024 * 1024);
});

test("pours exactly the requested bytes, also to a slow reader, and keeps the bytes after them", async () => {
  await using pair = await createPair();
  await using sink = await createSink();
  const block = Buffer.alloc(1_000_003, "0123456789");
  const wanted = createHash("sha256");
  for (let n = 0; n < 20; n++) {
    pair.peer.write(block);
    wanted.update(block);
  }
  pair.peer.write("rest");
  pair.relay.hold();
  const poured = pair.relay.pour(sink.to, block.length * 20);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const hash = createHash("sha256");
  let size = 0;
  sink.from.on("data", (chunk) => {
    hash.update(chunk);
    size += chunk.length;
  });
  await poured;
  sink.to.end();
  await once(sink.from, "end");
  expect(size).toBe(block.length * 20);
  expect(hash.digest("hex")).toBe(wanted.digest("hex"));
});

test.each(["end", "reset", "sink"])("a pour that is broken off by %s rejects", async (how) => {
  await using pair = await createPair();
  await using sink = await createSink();
  sink.from.resume();
  pair.relay.hold();
  const poured = pair.relay.pour(sink.to, 1_000);
  const outcome = expect(poured).rejects.toThrow();
  pair.peer.write("part");
  await new Promise((resolve) => setTimeout(resolve, 30));
  if (how === "end") pair.peer.end();
  else if (how === "reset") pair.peer.resetAndDestroy();
  else {
    sink.to.destroy();
    pair.peer.write("more");
  }
  await outcome;
});
