import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { AGENT_PORT } from "@skerry/wire";
import { afterEach, expect, it } from "vitest";
import { relieve } from "./relieve.ts";

/** An address of this machine's loopback that nobody else uses. */
const ADDRESS = "127.83.7.1";
const servers: AsyncDisposable[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

async function agentThat(answers: RequestListener): Promise<void> {
  const server = createServer(answers);
  servers.push({
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  server.listen(AGENT_PORT, ADDRESS);
  await once(server, "listening");
}

const ask = () => relieve({ address: ADDRESS, accessToken: "t" }, { bytes: 1_000, insist: false });

it("sends the token and how much is wanted, and returns what was ended", async () => {
  let seen: unknown;
  await agentThat(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    seen = { method: req.method, url: req.url, token: req.headers["x-access-token"], body };
    res.end(JSON.stringify({ killed: [{ pid: 7, name: "python3", bytes: 2_000 }] }));
  });
  expect(await ask()).toEqual([{ pid: 7, name: "python3", bytes: 2_000 }]);
  expect(seen).toEqual({ method: "POST", url: "/relieve", token: "t", body: '{"bytes":1000,"insist":false}' });
});

it.each([
  ["refuses", ((_req, res) => res.writeHead(401).end()) as RequestListener, "401"],
  ["answers nonsense", ((_req, res) => res.end("<html>")) as RequestListener, "JSON"],
  ["answers another shape", ((_req, res) => res.end('{"killed":[{"pid":"7"}]}')) as RequestListener, "malformed"],
  [
    "never stops answering",
    ((_req, res) => void setInterval(() => res.write("x".repeat(10_000)), 1).unref()) as RequestListener,
    "too long",
  ],
  ["hangs up", ((req) => req.socket.destroy()) as RequestListener, "socket hang up"],
  ["says nothing", (() => {}) as RequestListener, "no answer in 2000 ms"],
])("fails when the agent %s", async (_what, answers, message) => {
  await agentThat(answers);
  await expect(ask()).rejects.toThrow(message);
});

it("shortens names that a guest has made up", async () => {
  await agentThat((_req, res) => res.end(JSON.stringify({ killed: [{ pid: 7, name: "n".repeat(5_000), bytes: 1 }] })));
  const [first] = await ask();
  expect(first?.name).toHaveLength(64);
});
