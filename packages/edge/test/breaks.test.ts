import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient, readAnswer, responseTo, waitFor } from "./client.ts";
import { createWorld, type Reach, SANDBOX_ID } from "./parts.ts";

describe.each<Reach>(["direct", "connect"])("ends and breaks over a %s dial", (reach) => {
  test.each([
    ["with a length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"],
    ["in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n"],
    ["until the connection ends", "HTTP/1.1 200 OK\r\n\r\nsome"],
  ])("a sandbox that dies in an answer %s resets the client, it never ends cleanly", async (_name, text) => {
    await using world = await createWorld(reach);
    await world.serveTcp(3000, (socket) => socket.once("data", () => socket.write(text)));
    const client = new RawClient(world.port).send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
    await client.until("some");
    world.sandboxes.kill(SANDBOX_ID);
    await client.closed;
    expect(client.ended).toBe(false);
    expect(client.error).toMatchObject({ code: "ECONNRESET" });
    expect((await fetchThrough(world.port, 49983, { path: "/health" })).body.toString()).toContain("was not found");
  });

  test("a length that the server does not keep resets the client, even after a clean end", async () => {
    await using world = await createWorld(reach);
    await world.serveTcp(3000, (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")));
    const client = new RawClient(world.port).send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
    await client.closed;
    expect(client.error).toMatchObject({ code: "ECONNRESET" });
  });

  test("a large answer of known length that breaks off resets the client; a whole one leaves the connection usable", async () => {
    await using world = await createWorld(reach);
    const size = 3_000_000;
    await world.serve(3000, (req, res) => {
      res.writeHead(200, { "Content-Length": size });
      if (req.url === "/whole") return res.end(Buffer.alloc(size, "w"));
      res.write(Buffer.alloc(size / 2, "p"));
      return setTimeout(() => (req.url === "/kill" ? world.sandboxes.kill(SANDBOX_ID) : res.destroy()), 100);
    });
    // Counting is slow, so it waits until enough bytes have arrived.
    const hasWhole = ({ received }: RawClient, answers: number) =>
      received.length > answers * size && received.split("w").length - 1 === answers * size ? true : undefined;
    const whole = new RawClient(world.port);
    for (const answers of [1, 2]) {
      whole.send(`GET /whole HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
      await waitFor(() => hasWhole(whole, answers), `answer ${answers}`);
      expect(whole.received.split("HTTP/1.1 200 OK").length - 1).toBe(answers);
    }
    const pipelined = new RawClient(world.port).send(`GET /whole HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`.repeat(3));
    await waitFor(() => hasWhole(pipelined, 3), "three answers");
    pipelined.socket.destroy();
    whole.socket.destroy();
    for (const path of ["/end", "/kill"]) {
      const client = new RawClient(world.port).send(`GET ${path} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
      await client.closed;
      expect([path, client.ended, (client.error as NodeJS.ErrnoException | undefined)?.code]).toEqual([path, false, "ECONNRESET"]);
    }
  });

  test("what is left of a large request that was answered early does not stand before the client's next one", async () => {
    await using world = await createWorld(reach);
    // Responds at once and stops reading.
    await world.serveTcp(3000, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.pause().write("HTTP/1.1 507 Full\r\nContent-Length: 2\r\n\r\nno"));
    });
    const size = 8_000_000;
    const client = new RawClient(world.port);
    for (const answers of [1, 2, 3]) {
      client.send(`POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nContent-Length: ${size}\r\n\r\n`).send(Buffer.alloc(size / 2));
      await waitFor(() => (client.received.split("HTTP/1.1 507").length - 1 === answers ? true : undefined), "the early answer");
      client.send(Buffer.alloc(size / 2));
    }
    client.socket.destroy();
  });

  test("a body that ends with the connection is whole", async () => {
    await using world = await createWorld(reach);
    await world.serveTcp(3000, (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nall of it")));
    expect((await fetchThrough(world.port, 3000)).body.toString()).toBe("all of it");
  });

  test("a client that goes away closes the sandbox's connection at once: while waiting, uploading and downloading", async () => {
    await using world = await createWorld(reach);
    let requests = 0;
    let ended = 0;
    await world.serve(3000, (req, res) => {
      requests++;
      res.once("close", () => ended++);
      req.on("error", () => {});
      if (req.url === "/down") res.write("x");
    });
    const heads = ["GET /wait", "POST /up", "GET /down"].map(
      (line) => `${line} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n${line.startsWith("POST") ? "Content-Length: 10\r\n\r\nabc" : "\r\n"}`,
    );
    for (const [n, head] of heads.entries()) {
      const client = new RawClient(world.port).send(head);
      await waitFor(() => (requests === n + 1 ? true : undefined), "the request");
      client.socket.destroy();
      await waitFor(() => (ended === n + 1 ? true : undefined), `the end of ${head}`);
    }
    await waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "sandbox connections to close");
  });

  test("an answer before the end of the request reaches the client, and the connection goes on", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, (_req, res) => res.writeHead(401).end("no"));
    const client = new RawClient(world.port).send(
      `POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n`,
    );
    await client.until("no");
    client.send("1\r\nb\r\n0\r\n\r\n").send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
    await waitFor(() => (client.received.split(" 401 ").length === 3 ? true : undefined), "the second answer");
    client.socket.destroy();
  });

  test("100 MB go through unchanged in both directions", async () => {
    await using world = await createWorld(reach);
    const block = Buffer.alloc(1024 * 1024, "0123456789abcdef");
    const whole = createHash("sha256");
    for (let n = 0; n < 100; n++) whole.update(block);
    const wanted = whole.digest("hex");
    await world.serve(3000, async (req, res) => {
      if (req.method === "GET") {
        if (req.url === "/length") res.setHeader("Content-Length", block.length * 100);
        for (let n = 0; n < 100; n++) if (!res.write(block)) await new Promise((resolve) => res.once("drain", resolve));
        return res.end();
      }
      const hash = createHash("sha256");
      for await (const chunk of req) hash.update(chunk as Buffer);
      return res.end(hash.digest("hex"));
    });
    for (const path of ["/length", "/chunked"]) {
      const hash = createHash("sha256");
      const down = httpRequest({ host: "127.0.0.1", port: world.port, path, headers: { host: hostOf(3000) }, agent: false }).end();
      for await (const chunk of await responseTo(down)) hash.update(chunk as Buffer);
      expect(hash.digest("hex")).toBe(wanted);
      const up = httpRequest({
        host: "127.0.0.1",
        port: world.port,
        path,
        method: "POST",
        agent: false,
        headers: { host: hostOf(3000), ...(path === "/length" ? { "content-length": block.length * 100 } : {}) },
      });
      const response = responseTo(up);
      for (let n = 0; n < 100; n++) if (!up.write(block)) await new Promise((resolve) => up.once("drain", resolve));
      up.end();
      expect((await readAnswer(await response)).body.toString()).toBe(wanted);
    }
  });

  test("a slow reader holds the sandbox back, a slow sandbox holds the client back", async () => {
    await using world = await createWorld(reach);
    const block = Buffer.alloc(1024 * 1024);
    let sent = 0;
    const flood = (socket: { write(chunk: Buffer): boolean; once(event: "drain", listener: () => void): unknown; destroyed: boolean }) => {
      while (!socket.destroyed && socket.write(block)) sent += block.length;
      if (!socket.destroyed) {
        sent += block.length;
        socket.once("drain", () => flood(socket));
      }
    };
    await world.serve(3000, (req, res) => {
      if (req.url === "/length") res.setHeader("Content-Length", 10_000_000_000);
      if (req.method === "GET") flood(res);
      else req.pause();
    });
    const still = async () => {
      let before = -1;
      while (before !== sent) {
        before = sent;
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
      return sent;
    };
    for (const path of ["/chunks", "/length"]) {
      sent = 0;
      const reader = new RawClient(world.port);
      reader.socket.pause();
      reader.send(`GET ${path} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
      await waitFor(() => (sent > 0 ? true : undefined), "the first bytes");
      // Kernel buffers on loopback hold several MB per hop. Without backpressure, this would grow until memory is exhausted.
      expect(await still()).toBeLessThan(64 * 1024 * 1024);
      reader.socket.destroy();
    }
    sent = 0;
    const writer = new RawClient(world.port).send(`POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nContent-Length: 10000000000\r\n\r\n`);
    flood(writer.socket);
    expect(await still()).toBeLessThan(64 * 1024 * 1024);
    writer.socket.destroy();
  });

  test("closing the edge resets what is open", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, (_req, res) => res.write("x"));
    const client = new RawClient(world.port).send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
    await client.until("x");
    await world.edge.close();
    await client.closed;
    expect(client.ended).toBe(false);
  });
});
