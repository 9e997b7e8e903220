import { HttpError } from "./exchange.ts";

/** Not built yet. */
export function download(): never {
  throw new HttpError(501, "not implemented by this agent yet");
}
