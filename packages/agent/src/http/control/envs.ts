import { type Exchange, sendJson } from "../exchange.ts";

/** The variables that every new process gets. */
export function envs({ res, state }: Exchange): void {
  res.setHeader("Cache-Control", "no-store");
  sendJson(res, state.environment());
}
