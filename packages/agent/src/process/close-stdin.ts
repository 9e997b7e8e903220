import { Code, ConnectError } from "@connectrpc/connect";
import type { CloseStdinRequest } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";

export function closeStdin(process: ProcessContext, request: CloseStdinRequest): Record<never, never> {
  const { input } = process.table.findLive(request.process);
  if (input.kind === "pty") {
    throw new ConnectError("error closing stdin: cannot close stdin for PTY process, send Ctrl+D (0x04) instead", Code.Unknown);
  }
  input.stream?.end();
  return {};
}
