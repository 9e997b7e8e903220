import { request } from "node:http";
import { runtimesFor } from "@skerry/testkit/depth";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf } from "./client.ts";

/** `serve.py ADDRESS PORT` responds with the address at which it was reached. `POST` echoes the body. */
const SERVER = `
import socket, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(sys.argv[1].encode())
    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
`;

describe.each(runtimesFor("ports inside a sandbox"))("ports inside a sandbox on %s", (runtime) => {
  let platform: SharedPlatform;
  let sandbox: Sandbox;
  beforeAll(async () => {
    platform = await sharedPlatform(runtime);
    sandbox = await Sandbox.create(clientOf(platform));
    await sandbox.files.write("serve.py", SERVER);
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  const start = (address: string, port: number) =>
    sandbox.commands.run(`exec python3 serve.py ${address} ${port}`, { background: true, timeoutMs: 0 });

  /** The body of a response, or the status of a failure. */
  function ask(port: number, body?: Buffer): Promise<string | number> {
    const headers = { Host: sandbox.getHost(port), ...(body && { "Content-Length": body.length }) };
    return new Promise((resolve, reject) => {
      request(`${platform.edgeUrl}/`, { method: body ? "POST" : "GET", headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk)).once("error", reject);
        response.once("end", () =>
          resolve(response.statusCode === 200 ? Buffer.concat(chunks).toString("latin1") : (response.statusCode ?? 0)),
        );
      })
        .once("error", reject)
        .end(body);
    });
  }

  async function askUntilItListens(port: number): Promise<string | number> {
    const deadline = Date.now() + 60_000;
    for (;;) {
      const answer = await ask(port);
      if (answer !== 502 || Date.now() > deadline) return answer;
    }
  }

  it.each([
    ["0.0.0.0", 8100],
    ["::", 8101],
    ["127.0.0.1", 8102],
    ["localhost", 8103],
    ["::1", 8104],
  ])("a server on %s is reachable from outside", async (address, port) => {
    const server = await start(address, port);
    expect(await askUntilItListens(port)).toBe(address);
    await server.kill();
    expect(await ask(port)).toBe(502);
  });

  it("carries large bodies both ways, and many connections at once, to a server on localhost", async () => {
    const server = await start("127.0.0.1", 8110);
    await askUntilItListens(8110);
    const large = Buffer.alloc(5_000_000, "0123456789");
    expect(await ask(8110, large)).toBe(large.toString("latin1"));
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(8110)));
    expect(new Set(answers)).toEqual(new Set(["127.0.0.1"]));
    await server.kill();
  });

  it("reaches a server that opens its port again, and never occupies that port", async () => {
    for (const address of ["127.0.0.1", "0.0.0.0", "127.0.0.1", "::1", "0.0.0.0"]) {
      const server = await start(address, 8120);
      expect(await askUntilItListens(8120)).toBe(address);
      await server.kill();
      // The next server binds at once. It would fail if a part of the platform still listened on the port.
    }
    expect((await sandbox.commands.run("ss -Hltn | awk '{print $4}' | sort", { user: "root" })).stdout.trim()).toMatch(/:49983$/);
  });

  it("does not reach other addresses of the loopback network", async () => {
    const server = await start("127.0.0.2", 8130);
    await sandbox.commands.run("for i in $(seq 50); do curl -s 127.0.0.2:8130 && exit; sleep 0.1; done; exit 1");
    expect(await ask(8130)).toBe(502);
    await server.kill();
  });

  it("leaves no connection behind", async () => {
    const server = await start("127.0.0.1", 8140);
    await askUntilItListens(8140);
    await Promise.all(Array.from({ length: 20 }, () => ask(8140)));
    await server.kill();
    // Only the connection of this request. Those of earlier commands close after their responses, while a leaked one would stay open.
    const connections = async () => (await sandbox.commands.run("ss -Htn state established | wc -l", { user: "root" })).stdout.trim();
    await expect.poll(connections).toBe("1");
  });
});
