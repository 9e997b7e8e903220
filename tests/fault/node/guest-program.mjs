// Runs inside a sandbox, on the agent's own Node.js. Holds one of everything that has to survive, and tells about it on port 8000.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync, rmSync, unlinkSync, watch, writeFileSync, writeSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer } from "node:net";

const dir = "/root/held";
const startedAt = process.hrtime.bigint();

let ticks = 0;
setInterval(() => {
  ticks += 1;
}, 100);

const deletedPath = `${dir}/deleted`;
const deleted = openSync(deletedPath, "w+");
writeSync(deleted, "still readable");
unlinkSync(deletedPath);

const kept = openSync(`${dir}/kept`, "w+");
writeSync(kept, "one");

const seen = [];
watch(`${dir}/watched`, (_event, name) => seen.push(name));

rmSync(`${dir}/socket`, { force: true });
const unixServer = createServer((socket) => socket.pipe(socket)).listen(`${dir}/socket`);
const unixAnswers = [];
const unixClient = connect(`${dir}/socket`);
unixClient.on("data", (chunk) => unixAnswers.push(String(chunk)));

const child = spawn("/bin/cat", { stdio: ["pipe", "pipe", "ignore"] });
const childAnswers = [];
child.stdout.on("data", (chunk) => childAnswers.push(String(chunk)));

const memory = Buffer.alloc(8 * 1024 * 1024, "memory of the guest ");

/** Echoes each byte; what went through is counted and hashed. */
createServer((socket) => {
  socket.on("error", () => {});
  socket.pipe(socket);
}).listen(8001, "0.0.0.0");

/** Takes everything until the other side has finished, and answers with its length and hash. */
createServer({ allowHalfOpen: true }, (socket) => {
  const hash = createHash("sha256");
  let size = 0;
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    size += chunk.length;
    hash.update(chunk);
  });
  socket.on("end", () => socket.end(`${size} ${hash.digest("hex")}`));
}).listen(8002, "0.0.0.0");

async function state(token) {
  writeSync(kept, ` and ${token}`);
  writeFileSync(`${dir}/watched/${token}`, "");
  unixClient.write(`unix ${token}`);
  child.stdin.write(`child ${token}`);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const held = Buffer.alloc(14);
  readSync(deleted, held, 0, 14, 0);
  return {
    pid: process.pid,
    startedAt: String(startedAt),
    ticks,
    now: Date.now(),
    deleted: `${held}`,
    deletedLinks: fstatSync(deleted).nlink,
    watched: seen.includes(token),
    unix: unixAnswers.join("").includes(`unix ${token}`),
    child: childAnswers.join("").includes(`child ${token}`),
    memory: createHash("sha256").update(memory).digest("hex"),
  };
}

let streamed = 0;
createHttpServer(async (request, response) => {
  const url = new URL(request.url, "http://guest");
  if (url.pathname === "/state") return response.end(JSON.stringify(await state(url.searchParams.get("token"))));
  if (url.pathname === "/stream") {
    // Numbered lines, slowly: one that is lost or doubled shows.
    const total = Number(url.searchParams.get("lines"));
    for (let line = 0; line < total; line += 1) {
      response.write(`${line} ${"x".repeat(200)}\n`);
      streamed += 1;
      if (line % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return response.end("end\n");
  }
  response.end(JSON.stringify({ streamed }));
})
  .listen(8000, "0.0.0.0", () => writeFileSync(`${dir}/ready`, ""))
  .on("close", () => closeSync(kept));
unixServer.unref();
