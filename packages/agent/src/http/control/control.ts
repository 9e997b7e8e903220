import { type Exchange, HttpError } from "../exchange.ts";

/** Routes of agents in virtual machines, which the platform may ask for: this one has nothing to freeze or upgrade. */
export function control({ path }: Exchange): never {
  throw new HttpError(501, `POST ${path} is not implemented by this agent`);
}
