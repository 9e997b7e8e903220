import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "e2b";

export const SERVER_PORT = 8000;

/** Answers "/" with 1 KiB and "/100" with 100 MB, takes bodies of any size, and accepts WebSockets. */
const SERVER = `
const { createHash } = require("node:crypto");
const PAGE = "x".repeat(1023) + "\\n";
const PIECE = Buffer.alloc(250000);
const server = require("node:http").createServer((req, res) => {
  if (req.method === "PUT") return req.resume().once("end", () => res.end());
  const megabytes = Number(req.url.slice(1));
  if (megabytes === 0) return res.end(PAGE);
  res.setHeader("Content-Length", megabytes * 1e6);
  let left = megabytes * 4;
  const send = () => {
    while (left > 0) {
      left--;
      if (!res.write(PIECE)) return;
    }
    res.end();
  };
  res.on("drain", send);
  send();
});
server.on("upgrade", (req, socket) => {
  const accept = createHash("sha1").update(req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  socket.on("error", () => {}).on("end", () => socket.end()).resume();
});
server.listen({ port: ${SERVER_PORT}, host: "0.0.0.0", backlog: 4096 });
`;

/** Starts the server in the sandbox. Returns the address at which this host reaches the sandbox. */
export async function startServer(sandbox: Sandbox): Promise<string> {
  await sandbox.files.write("server.cjs", SERVER);
  await sandbox.commands.run("exec node server.cjs", { background: true, timeoutMs: 0, user: "root" });
  const own = "Object.values(os.networkInterfaces()).flat().find((one) => one.family === 'IPv4' && !one.internal).address";
  const address = (await sandbox.commands.run(`node -p "${own}"`)).stdout.trim();
  for (let tried = 0; tried < 300; tried++) {
    const response = await fetch(`http://${address}:${SERVER_PORT}/`).catch(() => undefined);
    if (response?.ok) return address;
    await sleep(100);
  }
  throw new Error(`the server in the sandbox does not answer at ${address}`);
}
