import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { type SendSignalRequest, Signal } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";

/** One that the kernel holds up (on a network file system, say) is not waited for any longer. */
const KILL_WAIT_MS = 1_000;

/** A kill is answered when the process is gone: who has killed it does not find it in the list, nor among the kernel's. */
export async function sendSignal(process: ProcessContext, request: SendSignalRequest): Promise<Record<never, never>> {
  const target = process.table.findLive(request.process);
  switch (request.signal) {
    case Signal.SIGKILL:
      target.signal("SIGKILL");
      await Promise.race([target.ended, sleep(KILL_WAIT_MS, undefined, { ref: false })]);
      break;
    case Signal.SIGTERM:
      target.signal("SIGTERM");
      break;
    default:
      throw new ConnectError(`invalid signal: ${Signal[request.signal] ?? request.signal}`, Code.Unimplemented);
  }
  return {};
}
