import type { HandlerContext } from "@connectrpc/connect";
import type { ConnectRequest } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";
import { deadlineError, follow } from "./follow.ts";

export async function* connect(process: ProcessContext, request: ConnectRequest, context: HandlerContext): ReturnType<typeof follow> {
  if ((context.timeoutMs() ?? 1) <= 0) throw deadlineError();
  const found = process.table.findLiveOrEnded(request.process);
  yield* follow(found, found.subscribe(), context);
}
