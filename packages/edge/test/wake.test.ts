import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import { describe, expect, test, vi } from "vitest";
import { fetchThrough, hostOf, RawClient, readAnswer, responseTo, waitFor } from "./client.ts";
import { Control } from "./control.ts";
import { createWorld, type Reach, SANDBOX_ID } from "./parts.ts";

const BROWSER = { "user-agent": "Mozilla/5.0 Chrome/140.0", accept: "text/html" };
const UPGRADE = `GET /ws HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`;

describe.each<Reach>(["direct", "connect"])("waking sandboxes over a %s dial", (reach) => {
  /** A paused sandbox with a server on port 3000 that records its requests. */
  async function asleep() {
    const control = new Control();
    const world = await createWorld(reach, { control });
    const seen: string[] = [];
    await world.serve(3000, async (req, res) => {
      seen.push(`${req.method} ${req.url}`);
      const hash = createHash("sha256");
      for await (const chunk of req) hash.update(chunk as Buffer);
      res.end(hash.digest("hex"));
    });
    control.pause();
    return { control, world, seen, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
  }

  test("the request that wakes a sandbox is served, and what it shows for itself is passed on", async () => {
    await using scene = await asleep();
    const { control, world, seen } = scene;
    const headers = { host: hostOf(3000), "x-access-token": "a token" };
    expect((await fetchThrough(world.port, 3000, { path: "/first?x=1", headers })).status).toBe(200);
    expect(seen).toEqual(["GET /first?x=1"]);
    expect(control.asked).toEqual([{ wake: true, port: 3000, accessToken: "a token", probe: false }]);
    expect((await fetchThrough(world.port, 3000)).status).toBe(200);
    expect([control.asked.length, control.resumes]).toEqual([1, 1]);
  });

  test("a question for the agent's health is told from all else", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    control.onWake = async () => control.refuse(Code.NotFound);
    const asks = ["GET /health", "HEAD /health?x", "POST /health", "GET /healthy", "GET /files"].map((line) => line.split(" "));
    for (const [method, path] of asks) await fetchThrough(world.port, 49983, { method, path });
    await fetchThrough(world.port, 3000, { path: "/health" });
    expect(control.asked.map(({ probe }) => probe)).toEqual([true, true, false, false, false, false]);
  });

  test("a body is neither lost nor taken in while the sandbox wakes", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    const awake = Promise.withResolvers<void>();
    control.onWake = () => awake.promise.then(() => control.resume());
    const block = Buffer.alloc(1024 * 1024, "0123456789abcdef");
    const upload = httpRequest({ host: "127.0.0.1", port: world.port, method: "POST", headers: { host: hostOf(3000) }, agent: false });
    const response = responseTo(upload);
    const wanted = createHash("sha256");
    let sent = 0;
    const pour = async () => {
      for (; sent < 100; sent++) {
        wanted.update(block);
        if (!upload.write(block)) await new Promise((resolve) => upload.once("drain", resolve));
      }
      upload.end();
    };
    const poured = pour();
    await sleep(500);
    // The waiting data is in the kernel's buffers, and in the edge's buffer for one stream.
    expect(sent).toBeLessThan(32);
    awake.resolve();
    await poured;
    expect((await readAnswer(await response)).body.toString()).toBe(wanted.digest("hex"));
  });

  test("an upgrade wakes a sandbox, and what came early behind its head arrives", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    control.onWake = () => sleep(200).then(() => control.resume());
    control.resume();
    const server = await world.serve(3001, () => {});
    server.on("upgrade", (_req, socket, head) => {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n${head}`);
      socket.pipe(socket);
    });
    control.pause();
    const client = new RawClient(world.port).send(`${UPGRADE.replace("3000-", "3001-")}early`);
    await sleep(50);
    client.send(" and late");
    await client.until("early and late");
    client.socket.destroy();
  });

  test("a client that waits for `100 Continue` gets it from the sandbox that was woken for it", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    const awake = Promise.withResolvers<void>();
    control.onWake = () => awake.promise.then(() => control.resume());
    const head = `POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n`;
    const client = new RawClient(world.port).send(head);
    await sleep(100);
    expect(client.received).toBe("");
    awake.resolve();
    await client.until("100 Continue");
    client.send("body");
    await client.until(createHash("sha256").update("body").digest("hex"));
    client.socket.destroy();
  });

  test("many requests at once wake it once, and all are served", async () => {
    await using scene = await asleep();
    const { control, world, seen } = scene;
    control.onWake = () => sleep(200).then(() => control.resume());
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => fetchThrough(world.port, 3000, { path: `/${n}` })));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200));
    expect(new Set(seen).size).toBe(50);
    expect([seen.length, control.asked.length, control.resumes]).toEqual([50, 1, 1]);
  });

  test("clients that leave while it wakes take nothing from the others, and are not served", async () => {
    await using scene = await asleep();
    const { control, world, seen } = scene;
    const awake = Promise.withResolvers<void>();
    control.onWake = () => awake.promise.then(() => control.resume());
    const leaver = new RawClient(world.port).send(`GET /leaver HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n\r\n`);
    const leaving = new RawClient(world.port).send(UPGRADE);
    await waitFor(() => (control.asked.length > 0 ? true : undefined), "the question");
    const stays = fetchThrough(world.port, 3000, { path: "/stays" });
    await sleep(50);
    leaver.socket.resetAndDestroy();
    leaving.socket.resetAndDestroy();
    await sleep(50);
    expect(control.aborted).toBe(0);
    const dials = world.sandboxes.dials;
    awake.resolve();
    expect((await stays).status).toBe(200);
    expect(seen).toEqual(["GET /stays"]);
    expect(world.sandboxes.dials - dials).toBe(1);
  });

  test("a sandbox that was paused behind a remembered route is woken, on the same node, for each request once", async () => {
    await using scene = await asleep();
    const { control, world, seen } = scene;
    for (const path of ["/1", "/2", "/3"]) {
      expect((await fetchThrough(world.port, 3000, { method: "POST", path, body: path })).status).toBe(200);
      control.pause();
    }
    expect(seen).toEqual(["POST /1", "POST /2", "POST /3"]);
    expect(control.resumes).toBe(3);
  });

  test("many requests with a remembered route of a sandbox that sleeps are all served, each once", async () => {
    await using scene = await asleep();
    const { control, world, seen } = scene;
    await fetchThrough(world.port, 3000, { path: "/warm" });
    control.pause();
    control.onWake = () => sleep(100).then(() => control.resume());
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => fetchThrough(world.port, 3000, { path: `/${n}` })));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(seen.length).toBe(51);
    expect(control.resumes).toBe(2);
  });

  test("a port that could not be reached because the sandbox was being paused is tried again when it is woken", async () => {
    await using scene = await asleep();
    const { control, world, seen } = scene;
    control.resume();
    const dial = world.sandboxes.dial;
    const failing = vi.spyOn(world.sandboxes, "dial");
    failing.mockImplementationOnce(async () => {
      control.pause();
      throw new PlatformError("port_closed", "its address is gone");
    });
    failing.mockImplementation(dial);
    expect((await fetchThrough(world.port, 3000)).status).toBe(200);
    expect([seen.length, control.resumes]).toEqual([1, 2]);
    // A port that is merely closed is not dialled again.
    const dials = failing.mock.calls.length;
    expect((await fetchThrough(world.port, 3333)).body.toString()).toContain("port is not open");
    expect(failing.mock.calls.length).toBe(dials + 1);
  });

  test("a request that a sandbox may have got before it was paused is not sent again, and wakes nothing", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    control.resume();
    let requests = 0;
    await world.serve(3001, () => {
      requests++;
      control.pause();
    });
    const answer = await fetchThrough(world.port, 3001, { method: "POST", body: "pay" });
    expect([answer.status, requests, control.resumes]).toEqual([502, 1, 1]);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ message: "The sandbox was not found", state: "paused" });
    expect(control.asked.at(-1)).toMatchObject({ wake: false });
  });

  test("a paused sandbox that traffic does not wake is not found, and stays paused", async () => {
    await using scene = await asleep();
    const { control, world, seen } = scene;
    control.autoResume = false;
    const answer = await fetchThrough(world.port, 3000);
    expect(answer.status).toBe(502);
    expect(answer.headers["retry-after"]).toBeUndefined();
    expect(answer.body.toString()).toBe(`{"sandboxId":"${SANDBOX_ID}","message":"The sandbox was not found","code":502,"state":"paused"}`);
    const page = await fetchThrough(world.port, 3000, { headers: { host: hostOf(3000), ...BROWSER } });
    expect(page.body.toString()).toContain("It is paused");
    expect(await new RawClient(world.port).send(UPGRADE).untilClosed()).toMatch(/^HTTP\/1\.1 502 .*was not found/s);
    expect([control.resumes, seen.length]).toEqual([0, 0]);
  });

  test("a sandbox that ended is not found, and the answer says when and why", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    control.autoResume = false;
    control.absence = { state: "ended", endReason: "timeout", endedAt: "2026-11-20T15:00:00.000Z" };
    expect(JSON.parse((await fetchThrough(world.port, 3000)).body.toString())).toEqual({
      sandboxId: SANDBOX_ID,
      message: "The sandbox was not found",
      code: 502,
      state: "ended",
      endReason: "timeout",
      endedAt: "2026-11-20T15:00:00.000Z",
    });
    const page = await fetchThrough(world.port, 3000, { headers: { host: hostOf(3000), ...BROWSER } });
    expect(page.body.toString()).toContain("It ended at 2026-11-20T15:00:00.000Z: its timeout was reached.");
  });

  test.each([
    [
      Code.PermissionDenied,
      403,
      "This sandbox can't be resumed with the credentials provided. Check your access token and try again.",
      undefined,
    ],
    [Code.Aborted, 409, "The sandbox is still transitioning. Try again in a moment.", "5"],
    [Code.ResourceExhausted, 429, "no more than 20 at once", undefined],
    [Code.Unavailable, 503, "The sandbox can't be resumed for now. Try again in a moment.", "5"],
  ])("a wake that is refused with code %i is a %i", async (code, status, message, retryAfter) => {
    await using scene = await asleep();
    const { control, world } = scene;
    control.onWake = async () => control.refuse(code, "no more than 20 at once");
    const answer = await fetchThrough(world.port, 3000);
    expect(answer.status).toBe(status);
    expect(answer.headers["retry-after"]).toBe(retryAfter);
    expect(JSON.parse(answer.body.toString())).toEqual({ sandboxId: SANDBOX_ID, message, code: status });
    const page = await fetchThrough(world.port, 3000, { headers: { host: hostOf(3000), ...BROWSER } });
    expect([page.status, page.headers["content-type"]]).toEqual([status, "text/html; charset=utf-8"]);
    expect(await new RawClient(world.port).send(UPGRADE).untilClosed()).toContain(`HTTP/1.1 ${status} `);
    control.onWake = async () => control.resume();
    expect((await fetchThrough(world.port, 3000)).status).toBe(200);
  });

  test("a control plane that fails is said to, whatever code that has", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    control.onWake = () => Promise.reject(new Error("no database"));
    const answer = await fetchThrough(world.port, 3000);
    expect([answer.status, answer.body.toString()]).toEqual([502, "Failed to route request to sandbox"]);
  });

  test("a stream on which nothing moves for seconds goes on", async () => {
    await using scene = await asleep();
    const { control, world } = scene;
    control.resume();
    await world.serve(3001, (_req, res) => {
      res.write("before");
      setTimeout(() => res.end(" and after"), 6_000);
    });
    expect((await fetchThrough(world.port, 3001)).body.toString()).toBe("before and after");
  });
});
