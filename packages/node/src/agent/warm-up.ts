// The first command in a sandbox costs more than later ones: the kernel looks up files for the first time, the agent loads its code, and
// after a restore each page of memory is read when it is first touched. A sandbox in the warm pool pays this cost in advance.

import { connectAgent, exchange } from "./exchange.ts";

const TIMEOUT_MS = 10_000;
const COMMAND = { process: { cmd: "/bin/bash", args: ["-l", "-c", "true"] } };

/** Runs a shell in a sandbox of the pool. Never rejects: an image may lack bash, and its first command is then as slow as ever. */
export async function warmUp(address: string): Promise<void> {
  try {
    await exchange(
      await connectAgent(address),
      {
        method: "POST",
        path: "/process.Process/Start",
        body: envelope(JSON.stringify(COMMAND)),
        contentType: "application/connect+json",
        headers: { "Connect-Protocol-Version": "1" },
      },
      { timeoutMs: TIMEOUT_MS },
    );
  } catch {
    // See above.
  }
}

/** Connect's frame of a message in a stream: no flags, four bytes of length. */
function envelope(text: string): Buffer {
  const message = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
