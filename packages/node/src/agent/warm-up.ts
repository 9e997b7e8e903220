// A first command is dearer than all others: files are looked up for the first time, the agent's code is loaded, and after a
// restore every page of memory is fetched back when it is first touched. A sandbox that waits in the pool does that ahead.

import { request } from "node:http";
import { AGENT_PORT } from "@skerry/wire";

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const COMMAND = { process: { cmd: "/bin/bash", args: ["-l", "-c", "true"] } };

/**
 * Runs a shell through the agent of a sandbox that is nobody's yet. Resolves whatever comes of it: an image may have no bash, and
 * then its first command is as it is.
 */
export function warmUp(address: string): Promise<void> {
  return new Promise((resolve) => {
    const body = envelope(JSON.stringify(COMMAND));
    const outgoing = request({
      host: address,
      port: AGENT_PORT,
      agent: false,
      method: "POST",
      path: "/process.Process/Start",
      headers: {
        Host: "agent",
        "Content-Type": "application/connect+json",
        "Connect-Protocol-Version": "1",
        "Content-Length": body.length,
      },
    });
    const timer = setTimeout(() => outgoing.destroy(), TIMEOUT_MS);
    outgoing.once("response", (response) => {
      let received = 0;
      response.on("data", (chunk: Buffer) => {
        received += chunk.length;
        if (received > MAX_ANSWER_BYTES) outgoing.destroy();
      });
      response.on("error", () => {});
    });
    outgoing.once("upgrade", (_response, socket) => socket.destroy());
    outgoing.on("error", () => {});
    outgoing.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    outgoing.end(body);
  });
}

/** Connect's frame of a message in a stream: no flags, four bytes of length. */
function envelope(text: string): Buffer {
  const message = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
