import { describe, expect, test } from "vitest";
import { fetchThrough, hostOf, RawClient } from "./client.ts";
import { createWorld, type Reach, SANDBOX_ID } from "./parts.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36";

describe.each<Reach>(["direct", "connect"])("refusals over a %s dial", (reach) => {
  test("an unknown sandbox is a 502 that says so", async () => {
    await using world = await createWorld(reach);
    const answer = await fetchThrough(world.port, 49983, { path: "/health", headers: { host: hostOf(49983, "iunknown") } });
    expect(answer.status).toBe(502);
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(answer.body.toString()).toBe('{"sandboxId":"iunknown","message":"The sandbox was not found","code":502}');
  });

  test("a sandbox that was killed is not found at once, though its route is still remembered", async () => {
    await using world = await createWorld(reach);
    await world.serve(49983, (_req, res) => res.writeHead(204).end());
    expect((await fetchThrough(world.port, 49983, { path: "/health" })).status).toBe(204);
    const find = world.routes.find;
    const remembered = await find(SANDBOX_ID as never);
    world.routes.find = async () => remembered;
    world.sandboxes.kill(SANDBOX_ID);
    const answer = await fetchThrough(world.port, 49983, { path: "/health" });
    expect(answer.status).toBe(502);
    expect(answer.body.toString()).toContain("was not found");
    expect(world.routes.forgotten).toEqual([SANDBOX_ID]);
  });

  test("a closed port is a 502 with the port as a number", async () => {
    await using world = await createWorld(reach);
    const answer = await fetchThrough(world.port, 3000);
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body.toString())).toEqual({
      sandboxId: SANDBOX_ID,
      message: "The sandbox is running but port is not open",
      port: 3000,
      code: 502,
    });
  });

  test("a server that breaks off before its answer is a closed port, one that was killed is not found", async () => {
    await using world = await createWorld(reach);
    await world.serveTcp(3000, (socket) => socket.once("data", () => socket.resetAndDestroy()));
    expect((await fetchThrough(world.port, 3000)).body.toString()).toContain("port is not open");
    await world.serveTcp(3001, (socket) => socket.once("data", () => world.sandboxes.kill(SANDBOX_ID)));
    expect((await fetchThrough(world.port, 3001)).body.toString()).toContain("was not found");
  });

  test("an answer that is not HTTP, or frames its body in two ways, is a 502", async () => {
    await using world = await createWorld(reach);
    const answers = [
      "SSH-2.0-x\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
      `HTTP/1.1 200 OK\r\nX-Long: ${"a".repeat(70_000)}\r\n\r\n`,
    ];
    for (const [n, text] of answers.entries()) {
      await world.serveTcp(4000 + n, (socket) => socket.once("data", () => socket.end(text)));
      const answer = await fetchThrough(world.port, 4000 + n);
      expect([n, answer.status]).toEqual([n, 502]);
    }
  });

  test("a person's browser gets a page, a script gets JSON", async () => {
    await using world = await createWorld(reach);
    const page = await fetchThrough(world.port, 3000, { headers: { host: hostOf(3000), "user-agent": BROWSER, accept: "text/html" } });
    expect(page.status).toBe(502);
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(page.body.toString()).toContain("no service running on port 3000");
    const headers = { host: hostOf(3000), "user-agent": BROWSER, "sec-fetch-mode": "cors" };
    expect((await fetchThrough(world.port, 3000, { headers })).headers["content-type"]).toContain("application/json");
  });

  test("the agent's own paths are not reachable, in no spelling, and the sandbox never sees them", async () => {
    await using world = await createWorld(reach);
    const seen: string[] = [];
    await world.serve(49983, (req, res) => res.end(seen.push(req.url ?? "").toString()));
    for (const path of [
      "/init",
      "//init",
      "/./init",
      "/x/../init",
      "/%69nit",
      "/%2569nit",
      "/init/",
      "/INIT",
      "/init?x",
      "/upgrade",
      "\\init",
    ]) {
      const client = new RawClient(world.port);
      client.send(`POST ${path} HTTP/1.1\r\nHost: ${hostOf(49983)}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      expect([path, (await client.untilClosed()).slice(9, 12)]).toEqual([path, path.startsWith("\\") ? "400" : "404"]);
    }
    const answer = await fetchThrough(world.port, 49983, { path: "/freeze?mode=x" });
    expect(JSON.parse(answer.body.toString())).toEqual({
      message: expect.stringContaining("reserved for the E2B control plane"),
      path: "/freeze",
      code: 404,
    });
    expect(seen).toEqual([]);
    await world.serve(3000, (_req, res) => res.end("mine"));
    expect((await fetchThrough(world.port, 3000, { path: "/init" })).body.toString()).toBe("mine");
  });

  test("a target that cannot be read is a 400 in plain text", async () => {
    await using world = await createWorld(reach);
    const cases: [Record<string, string>, string][] = [
      [{ host: "localhost" }, "Invalid host"],
      [{ host: "localhost", "E2b-Sandbox-Id": SANDBOX_ID }, "missing header"],
      [{ host: "localhost", "E2b-Sandbox-Id": "../x", "E2b-Sandbox-Port": "1" }, "Invalid sandbox ID"],
      [{ host: "localhost", "E2b-Sandbox-Id": SANDBOX_ID, "E2b-Sandbox-Port": "080" }, "Invalid sandbox port"],
      [{ host: `02280-${SANDBOX_ID}.skerry.test` }, "Invalid sandbox port"],
    ];
    for (const [headers, text] of cases) {
      const answer = await fetchThrough(world.port, 1, { headers });
      expect([answer.status, answer.headers["content-type"], answer.body.toString()]).toEqual([400, "text/plain; charset=utf-8", text]);
    }
  });

  test("a node or a route table that cannot be asked is a 502 in plain text", async () => {
    await using world = await createWorld(reach);
    world.routes.find = async () => {
      throw new Error("the control plane is away");
    };
    const answer = await fetchThrough(world.port, 3000);
    expect([answer.status, answer.body.toString()]).toEqual([502, "Failed to route request to sandbox"]);
  });
});
