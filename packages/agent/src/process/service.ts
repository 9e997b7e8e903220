import type { ServiceImpl } from "@connectrpc/connect";
import type { Process } from "@skerry/wire/process";
import { closeStdin } from "./close-stdin.ts";
import { connect } from "./connect.ts";
import type { ProcessContext } from "./context.ts";
import { list } from "./list.ts";
import { sendInput } from "./send-input.ts";
import { sendSignal } from "./send-signal.ts";
import { start } from "./start.ts";
import { streamInput } from "./stream-input.ts";
import { update } from "./update.ts";

export function processService(process: ProcessContext): ServiceImpl<typeof Process> {
  return {
    list: () => list(process),
    connect: (request, context) => connect(process, request, context),
    start: (request, context) => start(process, request, context),
    update: (request) => update(process, request),
    streamInput: (requests) => streamInput(process, requests),
    sendInput: (request) => sendInput(process, request),
    sendSignal: (request) => sendSignal(process, request),
    closeStdin: (request) => closeStdin(process, request),
  };
}
