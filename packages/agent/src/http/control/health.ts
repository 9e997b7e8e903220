import { type Exchange, sendNothing } from "../exchange.ts";

export function health({ res }: Exchange): void {
  sendNothing(res);
}
