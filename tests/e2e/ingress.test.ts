import { readdirSync, readFileSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { type RunningPlatform, testCacheDir } from "@skerry/testkit";
import { sharedPlatform } from "@skerry/testkit/run-services";
import { TEST_CERTIFICATE } from "@skerry/testkit/test-certificate";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

/** Answers with the head of the request: plain on 3000 and on the sandbox's own 127.0.0.1:3001, with TLS on 3443. */
const SERVER = `
const { readFileSync } = require("fs");
const answer = (req, res) => {
  res.setHeader("Set-Cookie", "a=b; Path=/; Domain=example.com");
  res.end(JSON.stringify({ headers: req.rawHeaders, tls: req.socket.encrypted === true }));
};
require("http").createServer(answer).listen(3000);
require("http").createServer(answer).listen(3001, "127.0.0.1");
require("https").createServer({ key: readFileSync("key.pem"), cert: readFileSync("cert.pem") }, answer).listen(3443);
`;
const TOKEN = "e2b-traffic-access-token";

describe("incoming traffic", () => {
  let platform: RunningPlatform;
  let stack: AsyncDisposableStack;
  beforeAll(async () => {
    stack = new AsyncDisposableStack();
    platform = stack.use(await sharedPlatform("gvisor"));
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  async function createServing(network: object): Promise<Sandbox> {
    const lifecycle = { onTimeout: "pause", autoResume: true } as const;
    const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs: 300_000, network, lifecycle });
    await sandbox.files.write("server.js", SERVER);
    await sandbox.files.write("key.pem", TEST_CERTIFICATE.key);
    await sandbox.files.write("cert.pem", TEST_CERTIFICATE.cert);
    await sandbox.commands.run("exec node server.js", { background: true, timeoutMs: 0 });
    const isUp = async (port: number) => (await ask(sandbox, { port, token: sandbox.trafficAccessToken })).status === 200;
    for (const port of [3000, 3001]) await waitUntil(`the server on ${port}`, () => isUp(port));
    return sandbox;
  }

  interface Asked {
    readonly port?: number;
    readonly path?: string;
    readonly token?: string | undefined;
    readonly headers?: Record<string, string>;
    /** Default: a new connection. */
    readonly agent?: Agent;
  }

  function ask(sandbox: Sandbox, { port = 3000, path = "/", token, headers, agent }: Asked = {}) {
    return new Promise<{ status: number; text: string; headers: IncomingMessage["headers"] }>((resolve, reject) => {
      const fields = { Host: sandbox.getHost(port), ...(token === undefined ? {} : { [TOKEN]: token }), ...headers };
      const sent = request(platform.edgeUrl + path, { agent: agent ?? false, headers: fields });
      sent.once("error", reject).once("response", (response: IncomingMessage) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.once("error", reject).once("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
      });
      sent.end();
    });
  }

  const stateOf = async (sandbox: Sandbox) => (await sandbox.getInfo()).state;

  it("a private sandbox is reached with its token only, over pauses and for every way to name a port", async () => {
    const sandbox = await createServing({ allowPublicTraffic: false });
    const token = sandbox.trafficAccessToken;
    const other = await Sandbox.create({ ...clientOf(platform), network: { allowPublicTraffic: false } });
    const shared = (port: number) => ({ Host: "sandbox.example", "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": String(port) });
    const refused: Asked[] = [
      {},
      { port: 3001 },
      { port: 49_999 },
      { token: "" },
      { token: "wrong" },
      { token: other.trafficAccessToken },
      { headers: { "X-Access-Token": token ?? "" } },
      { headers: { Cookie: `${TOKEN}=${token}` } },
      { path: `/?${TOKEN}=${token}` },
      { headers: shared(3000) },
      { headers: { "E2b-Sandbox-Port": "49983", "E2b-Sandbox-Id": sandbox.sandboxId } },
    ];
    const statuses = async () => await Promise.all(refused.map(async (asked) => (await ask(sandbox, asked)).status));
    expect(await statuses()).toEqual(refused.map(() => 403));
    for (const asked of [{ token }, { port: 3001, token }, { token, headers: shared(3000) }]) {
      const answer = await ask(sandbox, asked);
      expect([asked, answer.status]).toEqual([asked, 200]);
      expect(answer.text).not.toMatch(new RegExp(`${token}|${TOKEN}`, "i"));
      expect(answer.headers["set-cookie"]).toEqual(["a=b; Path=/"]);
    }
    // The agent has a token of its own, which the SDK sends.
    expect((await ask(sandbox, { port: 49_983, path: "/files?path=server.js", token })).status).toBe(401);
    expect(await sandbox.files.read("server.js")).toBe(SERVER);
    await sandbox.pause();
    expect(await statuses()).toEqual(refused.map(() => 403));
    expect(await stateOf(sandbox)).toBe("paused");
    expect((await ask(sandbox, { token })).status).toBe(200);
    const again = await Sandbox.connect(sandbox.sandboxId, clientOf(platform));
    expect(again.trafficAccessToken).toBe(token);
    await Promise.all([sandbox.kill(), other.kill()]);
    expect(JSON.parse((await ask(sandbox, { token })).text)).toMatchObject({ message: "The sandbox was not found" });
  });

  it("a link opens one port of a private sandbox, wakes it, and is worth nothing once it is revoked", async () => {
    const sandbox = await createServing({ allowPublicTraffic: false });
    const headers = { "X-API-Key": platform.secrets.apiKey, "Content-Type": "application/json" };
    const links = (path = "", init: object = {}) =>
      fetch(`${platform.apiUrl}/sandboxes/${sandbox.sandboxId}/links${path}`, { headers, ...init });
    const made = await links("", { method: "POST", body: JSON.stringify({ port: 3000, expiresIn: 600, path: "/page?a=b" }) });
    const link = (await made.json()) as { linkID: string; url: string; token: string };
    expect(made.status).toBe(201);
    const url = new URL(link.url);
    expect(url.host).toBe(sandbox.getHost(3000));
    await sandbox.pause();
    const other: Asked[] = [{}, { port: 3001, headers: { "skerry-link-token": link.token } }];
    for (const asked of other) expect((await ask(sandbox, asked)).status).toBe(403);
    const opened = await ask(sandbox, { path: url.pathname + url.search });
    expect([opened.status, opened.headers.location]).toEqual([302, "/page?a=b"]);
    expect(await stateOf(sandbox)).toBe("paused");
    const Cookie = String(opened.headers["set-cookie"]).split(";")[0] ?? "";
    const shown = await ask(sandbox, { path: "/page?a=b", headers: { Cookie } });
    expect([shown.status, await stateOf(sandbox)]).toEqual([200, "running"]);
    expect(shown.text).not.toContain(link.token);
    expect((await ask(sandbox, { headers: { "skerry-link-token": link.token } })).status).toBe(200);
    expect((await links(`/${link.linkID}`, { method: "DELETE" })).status).toBe(204);
    await waitUntil("the edge has forgotten the link", async () => (await ask(sandbox, { headers: { Cookie } })).status === 403);
    expect((await ask(sandbox, { path: url.pathname + url.search })).status).toBe(403);
    expect(readFileSync(platform.logFile, "utf8")).not.toContain(link.token.split(".")[1]);
    await sandbox.kill();
  });

  it("a client that keeps its connection loses no request to a snapshot, a pause or a kill in between", async () => {
    const sandbox = await createServing({});
    using stack = new DisposableStack();
    const agent = stack.adopt(new Agent({ keepAlive: true, maxSockets: 1 }), (used) => used.destroy());
    const askAgain = async () => (await ask(sandbox, { agent })).status;
    const burst = async () => [await askAgain(), await askAgain(), await askAgain()];
    expect(await burst()).toEqual([200, 200, 200]);
    await sandbox.createSnapshot();
    expect(await burst()).toEqual([200, 200, 200]);
    // Each request comes while the connection to the sandbox is still kept, or just after it was closed.
    const [, ...during] = await Promise.all([sandbox.createSnapshot(), askAgain(), askAgain(), askAgain()]);
    expect(during).toEqual([200, 200, 200]);
    await sandbox.pause();
    expect([await burst(), await stateOf(sandbox)]).toEqual([[200, 200, 200], "running"]);
    await sandbox.kill();
    expect(JSON.parse((await ask(sandbox, { agent })).text)).toMatchObject({ message: "The sandbox was not found" });
  });

  it("a fork of a private sandbox has a token of its own", async () => {
    const sandbox = await createServing({ allowPublicTraffic: false });
    const [fork] = await sandbox.fork({ count: 1 });
    if (!(fork instanceof Sandbox)) throw new Error("the fork failed");
    const [token, forked] = [sandbox.trafficAccessToken, fork.trafficAccessToken];
    expect(forked).not.toBe(token);
    expect([await ask(fork, { token }), await ask(sandbox, { token: forked })].map(({ status }) => status)).toEqual([403, 403]);
    expect((await ask(fork, { token: forked })).status).toBe(200);
    await Promise.all([sandbox.kill(), fork.kill()]);
  });

  it("servers see the masked Host, and those that speak TLS are reached", async () => {
    const sandbox = await createServing({ maskRequestHost: "localhost:${PORT}", httpsPorts: [3443] });
    expect(sandbox.trafficAccessToken).toBeUndefined();
    const secure = JSON.parse((await ask(sandbox, { port: 3443 })).text);
    expect(secure.tls).toBe(true);
    const { headers, tls } = JSON.parse((await ask(sandbox)).text);
    expect(tls).toBe(false);
    expect(headers).toEqual(expect.arrayContaining(["Host", "localhost:3000", "X-Forwarded-Host", sandbox.getHost(3000)]));
    await sandbox.pause();
    expect((await ask(sandbox, { port: 3443 })).status).toBe(200);
    await sandbox.kill();
  });

  it("the official PyPI SDK reaches private sandboxes", async () => {
    const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
    if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
    const { stdout } = await runCommand(join(testCacheDir(), environment, "bin/python"), [join(import.meta.dirname, "ingress.py")], {
      env: { PATH: "/usr/bin:/bin", HOME: "/root", ...platform.env },
      timeoutMs: 120_000,
    });
    expect(stdout).toBe("all well\n");
  });
});
