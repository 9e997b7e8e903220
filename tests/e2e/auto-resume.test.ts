import { type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Platform, startPlatform } from "@skerry/testkit";
import { sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

/** Counts requests in memory, returns the length of bodies, and echoes short WebSocket messages. */
const SERVER = `
const { createHash } = require("crypto");
const server = require("http").createServer(async (req, res) => {
  let bytes = 0;
  for await (const chunk of req) bytes += chunk.length;
  res.end(JSON.stringify({ count: ++count, bytes, url: req.url }));
});
let count = 0;
server.on("upgrade", (req, socket) => {
  const key = req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1").update(key).digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  socket.on("error", () => {}).on("data", (frame) => {
    const length = frame[1] & 0x7f;
    const mask = frame.subarray(2, 6);
    const text = frame.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]);
    socket.write(Buffer.concat([Buffer.from([0x81, length]), text]));
  });
});
server.listen(3000);
`;

const MINUTE = 60_000;

// With one process and with three: between processes, other code carries the same requests.
const WAYS = [
  { name: "one process", roles: ["api,edge,node"] },
  { name: "a process for each role", roles: ["node", "api", "edge"] },
];
describe.each(sampleOf("ways to divide the roles of a platform that wakes sandboxes", WAYS, ({ roles }) => roles.length > 1))(
  "traffic for paused sandboxes, in $name",
  ({ roles }) => {
    let platform: Platform;
    beforeAll(async () => {
      platform = await startPlatform({ roles });
    });
    afterAll(() => platform?.[Symbol.asyncDispose]());

    async function createServing(options: { autoResume?: boolean; timeoutMs?: number } = {}): Promise<Sandbox> {
      const { autoResume = true, timeoutMs = 5 * MINUTE } = options;
      const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs, lifecycle: { onTimeout: "pause", autoResume } });
      await sandbox.files.write("server.js", SERVER);
      await sandbox.commands.run("exec node server.js", { background: true, timeoutMs: 0 });
      await waitUntil("the server to answer", async () => (await ask(sandbox, { path: "/up" })).status === 200);
      return sandbox;
    }

    function ask(sandbox: Sandbox, options: { path?: string; port?: number; body?: Buffer; headers?: Record<string, string> } = {}) {
      const { path = "/", port = 3000, body, headers } = options;
      return new Promise<{ status: number; text: string }>((resolve, reject) => {
        const sent = request(`${platform.edgeUrl}${path}`, {
          method: body ? "POST" : "GET",
          agent: false,
          headers: { ...headers, Host: sandbox.getHost(port), ...(body && { "Content-Length": body.length }) },
        });
        sent.once("error", reject).once("response", (response: IncomingMessage) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
          });
          response.once("error", reject).once("end", () => resolve({ status: response.statusCode ?? 0, text }));
        });
        sent.end(body);
      });
    }

    /** Lists show "paused" as soon as the pause has begun. The details show its result only when it is over. */
    async function isPaused(sandbox: Sandbox): Promise<boolean> {
      const { body } = await callApi(platform, `/sandboxes/${sandbox.sandboxId}`);
      return (body as { pauseMode?: string }).pauseMode !== undefined;
    }

    const stateOf = async (sandbox: Sandbox) => (await sandbox.getInfo()).state;

    it("a request wakes the sandbox and is served, with its body, by the process that was running in it", async () => {
      const sandbox = await createServing();
      await sandbox.pause();
      expect(await stateOf(sandbox)).toBe("paused");
      const askedAt = Date.now();
      const answer = await ask(sandbox, { path: "/woken", body: Buffer.alloc(5_000_000, "x") });
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.text)).toMatchObject({ bytes: 5_000_000, url: "/woken" });
      expect(JSON.parse(answer.text).count).toBeGreaterThan(1);
      const info = await sandbox.getInfo();
      expect(info.state).toBe("running");
      expect(info.endAt.getTime()).toBeGreaterThan(askedAt + 5 * MINUTE - 1_000);
      expect(info.endAt.getTime()).toBeLessThanOrEqual(Date.now() + 5 * MINUTE);
      await sandbox.kill();
    });

    it("a sandbox that was paused at its timeout is woken too, for at least five minutes", async () => {
      const sandbox = await createServing();
      await sandbox.setTimeout(1_000);
      await waitUntil("the pause", () => isPaused(sandbox));
      const askedAt = Date.now();
      expect((await ask(sandbox)).status).toBe(200);
      expect((await sandbox.getInfo()).endAt.getTime()).toBeGreaterThan(askedAt + 5 * MINUTE - 1_000);
      await sandbox.kill();
    });

    it("50 requests at once wake it once, and each is served once", async () => {
      const sandbox = await createServing();
      const before = JSON.parse((await ask(sandbox)).text).count as number;
      await sandbox.pause();
      const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(sandbox, { path: `/${n}` })));
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      expect(new Set(answers.map(({ text }) => JSON.parse(text).url)).size).toBe(50);
      expect(JSON.parse((await ask(sandbox)).text).count).toBe(before + 51);
      await sandbox.kill();
    });

    it("requests during a pause are served once or not at all", async () => {
      const sandbox = await createServing();
      let stop = false;
      let sent = 0;
      let received = 0;
      const answers: Promise<{ status: number; text: string }>[] = [];
      const send = async (path: string) => {
        const answer = await ask(sandbox, { path, body: Buffer.from("x") }).catch(() => ({ status: 0, text: "reset" }));
        if (answer.status === 200) received++;
        return answer;
      };
      const sending = (async () => {
        for (; !stop; sent++) {
          answers.push(send(`/${sent}`));
          await sleep(20);
        }
      })();
      const serves = async () => {
        const before = received;
        await waitUntil("requests are served", () => received >= before + 5, 60_000);
      };
      for (let round = 1; round <= 3; round++) {
        await serves();
        await sandbox.pause();
      }
      await serves();
      stop = true;
      await sending;
      const all = await Promise.all(answers);
      const served = all.filter(({ status }) => status === 200).map(({ text }) => JSON.parse(text).count as number);
      // Requests that were inside the sandbox during the pause are lost. The server gets no request twice.
      for (const { status, text } of all) expect([200, 502, 0], text).toContain(status);
      expect(new Set(served).size).toBe(served.length);
      const last = JSON.parse((await ask(sandbox)).text).count as number;
      expect(last).toBeLessThanOrEqual(sent + 10);
      await sandbox.kill();
    });

    it("a WebSocket wakes the sandbox, and is cut when the sandbox is paused again", async () => {
      const sandbox = await createServing();
      await sandbox.pause();
      const headers = { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "3000" };
      const socket = new WebSocket(platform.edgeUrl.replace("http:", "ws:"), { headers } as never);
      const heard: string[] = [];
      const closed = Promise.withResolvers<CloseEvent>();
      socket.onmessage = ({ data }) => void heard.push(String(data));
      socket.onclose = closed.resolve;
      socket.onopen = () => socket.send("hello");
      await waitUntil("the echo", () => heard.includes("hello"));
      await sandbox.pause();
      // 1006: closed without a close frame, so that clients do not take it for an orderly end.
      expect(await closed.promise).toMatchObject({ code: 1006, wasClean: false });
      expect(await stateOf(sandbox)).toBe("paused");
      await sandbox.kill();
    });

    it("the calls of the official SDK wake the sandbox, because they carry its token; calls without it are refused", async () => {
      const sandbox = await createServing();
      await sandbox.files.write("kept", "here");
      await sandbox.pause();
      const stranger = await ask(sandbox, { path: "/files?path=kept", port: 49983 });
      expect(stranger.status).toBe(403);
      expect(stranger.text).toContain("can't be resumed with the credentials provided");
      expect((await ask(sandbox, { port: 49983, headers: { "X-Access-Token": "wrong" } })).status).toBe(403);
      expect(await stateOf(sandbox)).toBe("paused");
      expect((await sandbox.commands.run("cat kept")).stdout).toBe("here");
      expect(await stateOf(sandbox)).toBe("running");
      await sandbox.pause();
      expect(await sandbox.files.read("kept")).toBe("here");
      await sandbox.kill();
    });

    it("a sandbox that traffic does not wake stays paused and is not found, until a client connects to it", async () => {
      const sandbox = await createServing({ autoResume: false });
      await sandbox.pause();
      const answer = await ask(sandbox);
      expect(answer.status).toBe(502);
      expect(JSON.parse(answer.text)).toEqual({
        sandboxId: sandbox.sandboxId,
        message: "The sandbox was not found",
        code: 502,
        state: "paused",
      });
      expect(await sandbox.isRunning()).toBe(false);
      await expect(sandbox.commands.run("true")).rejects.toThrow(/not found|not running/i);
      expect(await stateOf(sandbox)).toBe("paused");
      const again = await Sandbox.connect(sandbox.sandboxId, clientOf(platform));
      expect((await ask(again)).status).toBe(200);
      await again.kill();
    });

    it("a pause without memory is not undone by traffic", async () => {
      const sandbox = await createServing();
      await callApi(platform, `/sandboxes/${sandbox.sandboxId}/pause`, { body: { memory: false } });
      expect((await ask(sandbox)).status).toBe(502);
      expect(await stateOf(sandbox)).toBe("paused");
      await sandbox.kill();
    });

    it("a sandbox that is paused repeatedly while requests arrive serves each of them exactly once", async () => {
      const sandbox = await createServing();
      const before = JSON.parse((await ask(sandbox)).text).count as number;
      for (let round = 1; round <= 4; round++) {
        // The edge still has the old route.
        await sandbox.pause();
        expect((await ask(sandbox, { body: Buffer.from("once") })).status).toBe(200);
      }
      expect(JSON.parse((await ask(sandbox)).text).count).toBe(before + 5);
      await sandbox.kill();
      const gone = await ask(sandbox);
      expect(gone.status).toBe(502);
      expect(JSON.parse(gone.text)).toMatchObject({ message: "The sandbox was not found", state: "ended", endReason: "request" });
      expect(Math.abs(Date.parse(JSON.parse(gone.text).endedAt) - Date.now())).toBeLessThan(MINUTE);
    });
  },
);
