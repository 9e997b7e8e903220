import { Code, ConnectError } from "@connectrpc/connect";
import type { StreamInputRequest } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";
import type { GuestProcess } from "./running/guest-process.ts";
import { writeInput } from "./write-input.ts";

/** Streamed input: each message is written before the next one is read. The end of the stream does not close stdin. */
export async function streamInput(process: ProcessContext, requests: AsyncIterable<StreamInputRequest>): Promise<Record<never, never>> {
  let target: GuestProcess | undefined;
  for await (const { event } of requests) {
    switch (event.case) {
      case "start":
        target = process.table.findLive(event.value.process);
        break;
      case "data":
        if (!target) throw new ConnectError("the first message must select a process", Code.InvalidArgument);
        await writeInput(target, event.value.input);
        break;
      case "keepalive":
        break;
      default:
        throw new ConnectError("invalid event type <nil>", Code.Unimplemented);
    }
  }
  return {};
}
