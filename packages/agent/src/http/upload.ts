import { HttpError } from "./exchange.ts";

/** Not built yet. */
export function upload(): never {
  throw new HttpError(501, "not implemented by this agent yet");
}
