import { type Code, ConnectError } from "@connectrpc/connect";

/** The code of a call that fails; undefined when the call succeeds. */
export async function codeOf(call: Promise<unknown>): Promise<Code | undefined> {
  return await call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).code,
  );
}
