import type { SendInputRequest } from "@skerry/wire/process";
import type { ProcessContext } from "./context.ts";
import { writeInput } from "./write-input.ts";

export async function sendInput(process: ProcessContext, request: SendInputRequest): Promise<Record<never, never>> {
  await writeInput(process.table.findLive(request.process), request.input);
  return {};
}
