// Small routes that report the agent's state.

import { type Exchange, sendJson, sendNothing } from "../exchange.ts";

export function health({ res }: Exchange): void {
  sendNothing(res);
}

/** The variables that every new process gets. */
export function envs({ res, state }: Exchange): void {
  res.setHeader("Cache-Control", "no-store");
  sendJson(res, state.environment());
}

/** Answers when the hooks of the current generation have ended. Their run time is limited. */
export async function generation({ res, state }: Exchange): Promise<void> {
  await state.generation?.settled();
  sendNothing(res);
}
