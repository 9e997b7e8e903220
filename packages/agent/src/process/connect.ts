import type { HandlerContext } from "@connectrpc/connect";
import type { ConnectRequest } from "@skerry/wire/process";
import { assertTimeLeft } from "../server-stream.ts";
import type { ProcessContext } from "./context.ts";
import { follow } from "./follow.ts";

export async function* connect(process: ProcessContext, request: ConnectRequest, context: HandlerContext): ReturnType<typeof follow> {
  assertTimeLeft(context);
  const found = process.table.findLiveOrEnded(request.process);
  yield* follow(found, found.subscribe(), context);
}
