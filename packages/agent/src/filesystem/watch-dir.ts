import { setImmediate as nextRound } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { WatchDirRequest, WatchDirResponseSchema } from "@skerry/wire/filesystem";
import { abortError, assertTimeLeft, keepaliveMs, whenAborted } from "../server-stream.ts";
import type { FilesystemContext } from "./context.ts";
import { eventMessage } from "./watching/event-buffer.ts";
import { openWatcher } from "./watching/open-watcher.ts";

/** Messages sent before the agent reads the kernel's event queue again, which fills up in the meantime. */
const MESSAGES_PER_ROUND = 64;

export async function* watchDir(
  filesystem: FilesystemContext,
  request: WatchDirRequest,
  context: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof WatchDirResponseSchema>> {
  assertTimeLeft(context);
  const idleMs = keepaliveMs(context);
  const { watcher, close } = await openOrTimeOut(filesystem, request, context);
  using _ = whenAborted(context, (error) => watcher.buffer.fail(error));
  try {
    yield { event: { case: "start", value: {} } };
    for (let count = 1; ; count++) {
      const event = await watcher.buffer.next(idleMs);
      if (event === "idle") yield { event: { case: "keepalive", value: {} } };
      else yield { event: { case: "filesystem", value: await eventMessage(event) } };
      if (count % MESSAGES_PER_ROUND === 0) await nextRound();
    }
  } finally {
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
