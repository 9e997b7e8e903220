import { Code, ConnectError } from "@connectrpc/connect";
import type { UpdateRequest } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";

/** Resizes the terminal. Does nothing without `pty`. */
export function update(process: ProcessContext, request: UpdateRequest): Record<never, never> {
  const target = process.table.findLive(request.process);
  if (request.pty === undefined) return {};
  if (target.input.kind !== "pty") throw new ConnectError("error resizing tty: tty not assigned to process", Code.Internal);
  target.resize({ cols: request.pty.size?.cols ?? 0, rows: request.pty.size?.rows ?? 0 });
  return {};
}
