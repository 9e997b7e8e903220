import type { Socket } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { errnoOf } from "@skerry/base";
import type { ProcessInput } from "@skerry/wire/process";
import type { GuestProcess } from "./running/guest-process.ts";

/** Writes one piece of input. Resolves when the kernel has accepted all of it. */
export async function writeInput(process: GuestProcess, input: ProcessInput | undefined): Promise<void> {
  const target = process.input;
  switch (input?.input.case) {
    case "pty":
      if (target.kind !== "pty") throw internal("error writing to tty: tty not assigned to process, use stdin instead");
      return await write(target.stream, input.input.value, "error writing to tty");
    case "stdin":
      if (target.kind !== "pipe") throw internal("error writing to stdin: tty assigned to process, use pty instead");
      if (!target.stream || target.stream.writableEnded) throw internal("error writing to stdin: stdin not enabled or closed");
      return await write(target.stream, input.input.value, "error writing to stdin");
    default:
      throw new ConnectError("invalid input type <nil>", Code.Unimplemented);
  }
}

function write(stream: Socket, bytes: Uint8Array, prefix: string): Promise<void> {
  if (bytes.length === 0) return Promise.resolve();
  if (stream.destroyed) return Promise.reject(internal(`${prefix}: write |1: broken pipe`));
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => {
      if (!error) resolve();
      else reject(internal(`${prefix}: ${errnoOf(error) === "EIO" ? "input/output error" : "write |1: broken pipe"}`));
    });
  });
}

function internal(message: string): ConnectError {
  return new ConnectError(message, Code.Internal);
}
