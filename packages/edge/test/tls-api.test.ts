import { createServer, type RequestListener } from "node:http";
import { expect, test } from "vitest";
import { fetchThrough } from "./client.ts";
import { Http2Client } from "./http2-client.ts";
import { listen } from "./parts.ts";
import { createTlsWorld } from "./tls-world.ts";

const DOMAIN = "skerry.test:4443";

async function serveApi(stack: AsyncDisposableStack, listener: RequestListener) {
  return { domain: DOMAIN, host: "127.0.0.1", port: await listen(createServer(listener), stack) };
}

test("requests for api.{domain} go to the API, which learns how the client came", async () => {
  await using stack = new AsyncDisposableStack();
  const api = await serveApi(stack, async (req, res) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    res.writeHead(201, { "content-type": "application/json" });
    res.end(JSON.stringify({ method: req.method, url: req.url, headers: req.headers, body }));
  });
  await using tls = await createTlsWorld({ api });
  const headers = { host: "API.Skerry.test:4443", "x-api-key": "key", "x-forwarded-for": "6.6.6.6", "x-forwarded-proto": "gopher" };
  const answer = await tls.fetch(0, { method: "POST", path: "/v2/sandboxes?a=b", headers, body: Buffer.from("{}") });
  expect(answer.status).toBe(201);
  const seen = JSON.parse(answer.body.toString());
  expect(seen).toMatchObject({ method: "POST", url: "/v2/sandboxes?a=b", body: "{}" });
  expect(seen.headers).toMatchObject({
    host: "API.Skerry.test:4443",
    "x-api-key": "key",
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-proto": "https",
  });
});

test("the API is reached over HTTP/2, and sees who asks", async () => {
  await using stack = new AsyncDisposableStack();
  const api = await serveApi(stack, async (req, res) => {
    let text = "";
    for await (const chunk of req) text += chunk;
    res.end(JSON.stringify([req.method, req.url, text, req.headers["x-forwarded-proto"], req.headers["x-forwarded-for"]]));
  });
  await using tls = await createTlsWorld({ api });
  using client = await Http2Client.open(tls);
  const asked = { ":method": "POST", ":authority": "api.skerry.test:4443", ":path": "/sandboxes", "x-forwarded-for": "6.6.6.6" };
  const { headers, body } = await client.fetch(asked, "{}");
  expect([headers[":status"], JSON.parse(body.toString())]).toEqual([200, ["POST", "/sandboxes", "{}", "https", "127.0.0.1"]]);
  expect((await client.fetch({ ":authority": "api.skerry.example" })).headers[":status"]).toBe(400);
});

test("no other name, and no plain request, reaches the API", async () => {
  await using stack = new AsyncDisposableStack();
  let asked = 0;
  const api = await serveApi(stack, (_req, res) => {
    asked++;
    res.end();
  });
  await using tls = await createTlsWorld({ api });
  for (const host of ["api.skerry.example", "skerry.test", "x.api.skerry.test", "api.skerry.test.example", "api"]) {
    expect((await tls.fetch(0, { headers: { host } })).status, host).toBe(400);
  }
  expect((await fetchThrough(tls.world.port, 0, { headers: { host: "api.skerry.test" } })).status).toBe(400);
  const client = await tls.connect();
  await client.send("GET / HTTP/1.1\r\nHost: api.skerry.test\r\nHost: skerry.test\r\n\r\n").until("400 Bad Request");
  const other = await tls.connect();
  await other.send("GET http://skerry.example/ HTTP/1.1\r\nHost: api.skerry.test\r\n\r\n").until("400 Bad Request");
  expect(asked).toBe(0);
});

test("an API that is away, or breaks off, is answered for in JSON", async () => {
  await using stack = new AsyncDisposableStack();
  const breaking = await serveApi(stack, (req) => req.socket.destroy());
  await using closed = new AsyncDisposableStack();
  const away = await serveApi(closed, () => {});
  await closed.disposeAsync();
  for (const api of [breaking, away]) {
    await using tls = await createTlsWorld({ api });
    const answer = await tls.fetch(0, { headers: { host: "api.skerry.test" } });
    expect([answer.status, JSON.parse(answer.body.toString())]).toEqual([502, { code: 502, message: "The API can't be reached" }]);
  }
});
