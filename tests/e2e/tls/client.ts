// A program of a user of the npm SDK. Its environment has the variables of `./skerry env` of a platform with TLS, and no addresses.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "e2b";

const SERVER = `
const { createHash } = require("node:crypto");
const server = require("node:http").createServer((req, res) => res.end("path " + req.url));
server.on("upgrade", (req, socket) => {
  const accept = createHash("sha1").update(req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  socket.on("error", () => {});
  socket.on("data", (frame) => {
    const text = Buffer.from(frame.subarray(6, 6 + (frame[1] & 127))).map((byte, at) => byte ^ frame[2 + (at % 4)]);
    if ((frame[0] & 15) === 1) socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
    else socket.end();
  });
});
server.listen(8000, "0.0.0.0");
`;

const sandbox = await Sandbox.create();
assert.equal((await sandbox.commands.run("echo $((6 * 7))")).stdout, "42\n");

const data = new Uint8Array(randomBytes(3_000_000));
await sandbox.files.write("data.bin", data.buffer);
assert.deepEqual(Buffer.from(await sandbox.files.read("data.bin", { format: "bytes" })), Buffer.from(data));
const link = await sandbox.downloadUrl("data.bin");
assert.ok(link.startsWith(`https://49983-${sandbox.sandboxId}.${process.env.E2B_DOMAIN}/`), link);
assert.deepEqual(Buffer.from(await (await fetch(link)).arrayBuffer()), Buffer.from(data));
const form = new FormData();
form.append("file", new Blob(["sent"]), "x");
assert.equal((await fetch(await sandbox.uploadUrl("up.txt"), { method: "POST", body: form })).status, 200);
assert.equal(await sandbox.files.read("up.txt"), "sent");

await sandbox.files.write("server.cjs", SERVER);
await sandbox.commands.run("node server.cjs", { background: true, timeoutMs: 0 });
const host = sandbox.getHost(8000);
for (;;) {
  const response = await fetch(`https://${host}/page`);
  const text = await response.text();
  if (response.ok) {
    assert.equal(text, "path /page");
    break;
  }
  await sleep(100);
}
const socket = new WebSocket(`wss://${host}/`);
await once(socket, "open");
const echoed = once(socket, "message");
socket.send("through TLS");
assert.equal(((await echoed) as [MessageEvent])[0].data, "through TLS");
socket.close();

// A private sandbox: its token opens its ports, also while it is paused, and nothing else does.
const locked = await Sandbox.create({
  network: { allowPublicTraffic: false },
  lifecycle: { onTimeout: "pause", autoResume: true },
});
const token = { "e2b-traffic-access-token": locked.trafficAccessToken ?? "" };
await locked.commands.run("python3 -m http.server 8000", { background: true, timeoutMs: 0 });
const statusWith = async (headers: Record<string, string>) => (await fetch(`https://${locked.getHost(8000)}/`, { headers })).status;
while ((await statusWith(token)) === 502) await sleep(100);
assert.deepEqual([await statusWith(token), await statusWith({})], [200, 403]);
await locked.pause();
// On runc a pause keeps the files alone. Traffic does not wake such a sandbox, and finds none.
assert.deepEqual([await statusWith({}), await statusWith(token)], process.env.RUNTIME === "runc" ? [502, 502] : [403, 200]);
await locked.kill();
assert.equal(await statusWith({}), 502);

const listed = await Sandbox.list().nextItems();
assert.ok(listed.some(({ sandboxId }) => sandboxId === sandbox.sandboxId));
assert.equal(await sandbox.kill(), true);
process.stdout.write("all well\n");
// A WebSocket that is still closing must not keep the program.
process.exit();
