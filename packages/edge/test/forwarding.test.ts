import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient, readAnswer, responseTo, waitFor } from "./client.ts";
import { createWorld, type Reach, SANDBOX_ID } from "./parts.ts";

describe.each<Reach>(["direct", "connect"])("forwarding over a %s dial", (reach) => {
  test("a request and its answer arrive as they were sent", async () => {
    await using world = await createWorld(reach);
    let seen: { method?: string; url?: string; rawHeaders: string[]; body: string } | undefined;
    await world.serve(3000, async (req, res) => {
      const { body } = await readAnswer(req);
      seen = { method: req.method ?? "", url: req.url ?? "", rawHeaders: req.rawHeaders, body: body.toString() };
      res.sendDate = false;
      res.writeHead(201, "Made It", [
        "X-Mixed-Case",
        "One",
        "x-mixed-case",
        "Two",
        "Set-Cookie",
        "a=1",
        "Set-Cookie",
        "b=2",
        "Content-Length",
        "5",
      ]);
      res.end("hello");
    });
    const answer = await fetchThrough(world.port, 3000, {
      method: "PUT",
      path: "/a%20b//c/../d?x=1&x=2",
      headers: {
        "X-Some-Header": "v",
        "Content-Length": "3",
        "X-Forwarded-For": "1.2.3.4",
        Forwarded: "for=1.2.3.4",
        "X-Drop": "1",
        Connection: "close, X-Drop",
      },
      body: "abc",
    });
    expect(answer).toMatchObject({ status: 201, statusMessage: "Made It" });
    expect(answer.body.toString()).toBe("hello");
    const own = answer.rawHeaders.slice(0, 10);
    expect(own).toEqual(["X-Mixed-Case", "One", "x-mixed-case", "Two", "Set-Cookie", "a=1", "Set-Cookie", "b=2", "Content-Length", "5"]);
    expect(answer.headers).not.toHaveProperty("date");
    expect(seen).toMatchObject({ method: "PUT", url: "/a%20b//c/../d?x=1&x=2", body: "abc" });
    expect(seen?.rawHeaders).toEqual(["host", hostOf(3000), "X-Some-Header", "v", "Content-Length", "3", "Connection", "close"]);
  });

  test("the header form works on any host", async () => {
    await using world = await createWorld(reach);
    await world.serve(8080, (req, res) => res.end(req.headers.host));
    const headers = { host: `127.0.0.1:${world.port}`, "E2b-Sandbox-Id": SANDBOX_ID, "E2b-Sandbox-Port": "8080" };
    const answer = await fetchThrough(world.port, 8080, { headers });
    expect(answer.body.toString()).toBe(`127.0.0.1:${world.port}`);
  });

  test("HEAD, 204 and 304 answers have no body and keep their fields", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, (req, res) => {
      if (req.url === "/head") return res.writeHead(200, { "Content-Length": "1234" }).end();
      if (req.url === "/chunked") return res.write("x") && res.end("y");
      if (req.url === "/304") return res.writeHead(304, { ETag: '"x"' }).end();
      return res.writeHead(204).end();
    });
    const head = await fetchThrough(world.port, 3000, { method: "HEAD", path: "/head" });
    expect(head).toMatchObject({ status: 200, headers: { "content-length": "1234" } });
    const client = new RawClient(world.port).send(`HEAD /chunked HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: close\r\n\r\n`);
    expect(await client.untilClosed()).toMatch(/\r\n\r\n$/);
    expect(await fetchThrough(world.port, 3000, { path: "/304" })).toMatchObject({ status: 304, headers: { etag: '"x"' } });
    expect((await fetchThrough(world.port, 3000, { path: "/204" })).headers).not.toHaveProperty("transfer-encoding");
  });

  test("a POST without a body stays without one", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, (req, res) => res.end(JSON.stringify(req.headers)));
    const client = new RawClient(world.port).send(`POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: close\r\n\r\n`);
    const answer = await client.untilClosed();
    expect(answer).toContain('"content-length":"0"');
    expect(answer).not.toContain('"transfer-encoding"');
  });

  test("an answer's pieces arrive as they are made, and so does its head", async () => {
    await using world = await createWorld(reach);
    let go: (() => void) | undefined;
    await world.serve(3000, (_req, res) => {
      res.flushHeaders();
      go = () => res.write("piece");
    });
    const client = new RawClient(world.port).send(`GET / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
    await client.until("\r\n\r\n");
    expect(client.received).not.toContain("piece");
    go?.();
    await client.until("piece");
    client.socket.destroy();
  });

  test("a request's pieces arrive before the request has ended, with the answer's head before or after that", async () => {
    await using world = await createWorld(reach);
    const got: string[] = [];
    await world.serve(3000, (req, res) => {
      if (req.url === "/early") res.writeHead(200).flushHeaders();
      req.on("data", (chunk: Buffer) => got.push(chunk.toString()));
      req.on("end", () => res.end("done"));
    });
    for (const path of ["/early", "/late"]) {
      got.length = 0;
      const request = httpRequest({
        host: "127.0.0.1",
        port: world.port,
        method: "POST",
        path,
        headers: { host: hostOf(3000) },
        agent: false,
      });
      const response = responseTo(request);
      request.write("one");
      await waitFor(() => (got.join("") === "one" ? true : undefined), "the first piece");
      if (path === "/early") expect((await response).statusCode).toBe(200);
      request.write("two");
      await waitFor(() => (got.join("") === "onetwo" ? true : undefined), "the second piece");
      request.end();
      expect((await readAnswer(await response)).body.toString()).toBe("done");
    }
  });

  test("trailers go both ways", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, async (req, res) => {
      res.writeHead(200, { Trailer: "X-Sum" });
      res.write("body");
      await readAnswer(req);
      res.addTrailers({ "X-Sum": `sum of ${req.trailers["x-in"]}` });
      res.end();
    });
    const request = httpRequest({
      host: "127.0.0.1",
      port: world.port,
      method: "POST",
      agent: false,
      headers: { host: hostOf(3000), Trailer: "X-In", "Transfer-Encoding": "chunked", TE: "trailers" },
    });
    request.write("in");
    request.addTrailers({ "X-In": "7" });
    request.end();
    const answer = await readAnswer(await responseTo(request));
    expect(answer.trailers).toEqual({ "x-sum": "sum of 7" });
    expect(answer.headers.trailer).toBe("X-Sum");
  });

  test("Expect: 100-continue is the sandbox's to answer", async () => {
    await using world = await createWorld(reach);
    const server = await world.serve(3000, (_req, res) => res.end("plain"));
    server.on("checkContinue", (req, res) => {
      if (req.url === "/no") return res.writeHead(417).end();
      res.writeContinue();
      req.on("data", () => {}).on("end", () => res.end("took it"));
    });
    const head = (path: string) => `PUT ${path} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n`;
    const yes = new RawClient(world.port).send(head("/yes"));
    await yes.until("100 Continue\r\n\r\n");
    yes.send("data");
    await yes.until("took it");
    yes.socket.destroy();
    const no = new RawClient(world.port).send(head("/no"));
    expect(await no.untilClosed()).toMatch(/^HTTP\/1\.1 417 .*connection: close/is);
  });

  test.each([
    ["each on a sandbox connection of its own", 0, 4],
    ["which share a sandbox connection from the second one on", 60_000, 2],
  ])("one client connection serves many requests, %s", async (_name, upstreamIdleMs, dials) => {
    await using world = await createWorld(reach, { upstreamIdleMs });
    await world.serve(3000, (_req, res) => res.end("ok"));
    const client = new RawClient(world.port);
    for (let n = 1; n <= 4; n++) {
      client.send(`GET /${n} HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
      await waitFor(() => (client.received.split("HTTP/1.1 200").length - 1 === n ? true : undefined), `answer ${n}`);
    }
    expect(world.sandboxes.dials).toBe(dials);
    client.socket.destroy();
    await waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connections to close");
  });

  test("an HTTP/1.0 client gets an answer that ends with the connection", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, (_req, res) => {
      res.write("a");
      res.end("b");
    });
    const client = new RawClient(world.port).send(`GET / HTTP/1.0\r\nHost: ${hostOf(3000)}\r\n\r\n`);
    const answer = await client.untilClosed();
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(answer).toMatch(/\r\n\r\nab$/);
  });

  test("500 requests side by side are all answered, each with its own answer", async () => {
    await using world = await createWorld(reach);
    await world.serve(3000, (req, res) => setTimeout(() => res.end(req.url), 20));
    const answers = await Promise.all(Array.from({ length: 500 }, (_, n) => fetchThrough(world.port, 3000, { path: `/${n}` })));
    expect(answers.map((answer) => answer.body.toString())).toEqual(Array.from({ length: 500 }, (_, n) => `/${n}`));
    await waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "sandbox connections to close");
  });
});
