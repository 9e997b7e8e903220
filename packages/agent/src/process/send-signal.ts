import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { type SendSignalRequest, Signal } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";

/** Longest wait for a killed process. The kernel may hold it up, for example on a network file system. */
const KILL_WAIT_MS = 1_000;

/** Responds to SIGKILL only when the process has ended. So the client no longer finds it, neither in the list nor in the kernel. */
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
