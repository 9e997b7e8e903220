// Calls gVisor's kernel through the control socket of a sandbox, for functions that have no `runsc` command.

import { connect } from "node:net";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";

const TIMEOUT_MS = 10_000;
const MAX_ANSWER = 4096;

/** Asks gVisor's kernel to collect garbage. The kernel returns the memory to the host within seconds after that. */
export async function reduceMemory(stateDir: string, id: string): Promise<void> {
  const call = { method: "Usage.Reduce", arg: { wait: false, do_not_gc: false } };
  const answer = await callKernel(join(stateDir, `runsc-${id}.sock`), JSON.stringify(call));
  if (!/"success":true/.test(answer))
    throw new PlatformError("runtime_failed", `gVisor's kernel of ${id} did not collect garbage: ${answer}`);
}

/** Sends one call. The answer is one JSON object. */
function callKernel(path: string, call: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let answer = "";
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error("gVisor's kernel does not answer")));
    socket.once("error", reject);
    socket.once("close", () => resolve(answer));
    socket.on("data", (chunk: Buffer) => {
      answer += chunk.toString("latin1");
      if (answer.length > MAX_ANSWER || answer.trimEnd().endsWith("}")) socket.destroy();
    });
    socket.write(call);
  });
}
