import { Code, ConnectError } from "@connectrpc/connect";
import { type SendSignalRequest, Signal } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";

export function sendSignal(process: ProcessContext, request: SendSignalRequest): Record<never, never> {
  const target = process.table.findLive(request.process);
  switch (request.signal) {
    case Signal.SIGKILL:
      target.signal("SIGKILL");
      break;
    case Signal.SIGTERM:
      target.signal("SIGTERM");
      break;
    default:
      throw new ConnectError(`invalid signal: ${Signal[request.signal] ?? request.signal}`, Code.Unimplemented);
  }
  return {};
}
