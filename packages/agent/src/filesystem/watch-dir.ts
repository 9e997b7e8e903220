import { setImmediate as nextRound } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { WatchDirRequest, WatchDirResponseSchema } from "@skerry/wire/filesystem";
import { deadlineError, keepaliveInterval } from "../process/follow.ts";
import type { FilesystemContext } from "./context.ts";
import { eventMessage } from "./watching/event-message.ts";
import { openWatcher } from "./watching/open-watcher.ts";

/** Messages that may be sent in one go: the kernel's queue fills up while nobody reads it. */
const MESSAGES_PER_ROUND = 64;

export async function* watchDir(
  filesystem: FilesystemContext,
  request: WatchDirRequest,
  context: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof WatchDirResponseSchema>> {
  const timeoutMs = context.timeoutMs();
  if (timeoutMs !== undefined && timeoutMs <= 0) throw deadlineError();
  const keepaliveMs = keepaliveInterval(context.requestHeader.get("Keepalive-Ping-Interval"));
  const { watcher, close } = await openOrTimeOut(filesystem, request, context);
  const onAbort = () => watcher.buffer.fail(abortError(context.signal));
  context.signal.addEventListener("abort", onAbort);
  if (context.signal.aborted) onAbort();
  try {
    yield { event: { case: "start", value: {} } };
    for (let count = 1; ; count++) {
      const event = await watcher.buffer.next(keepaliveMs);
      if (event === "idle") yield { event: { case: "keepalive", value: {} } };
      else yield { event: { case: "filesystem", value: await eventMessage(event) } };
      if (count % MESSAGES_PER_ROUND === 0) await nextRound();
    }
  } finally {
    context.signal.removeEventListener("abort", onAbort);
    close();
  }
}

async function openOrTimeOut(
  filesystem: FilesystemContext,
  request: WatchDirRequest,
  context: HandlerContext,
): ReturnType<typeof openWatcher> {
  try {
    return await openWatcher(filesystem, request, context);
  } catch (error) {
    throw context.signal.aborted ? abortError(context.signal) : error;
  }
}

function abortError(signal: AbortSignal): ConnectError {
  const isDeadline = signal.reason instanceof ConnectError && signal.reason.code === Code.DeadlineExceeded;
  return isDeadline ? deadlineError() : new ConnectError("context canceled", Code.Canceled);
}
