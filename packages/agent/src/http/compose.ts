import { HttpError } from "./exchange.ts";

/** Not built yet. */
export function compose(): never {
  throw new HttpError(501, "POST /files/compose is not implemented by this agent yet");
}
