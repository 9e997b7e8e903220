import { type Exchange, sendNothing } from "../exchange.ts";

/** Answers when the hooks of the current generation have ended; they have a time limit. */
export async function generation({ res, state }: Exchange): Promise<void> {
  await state.generation?.settled();
  sendNothing(res);
}
