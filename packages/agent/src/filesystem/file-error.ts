import { Code, ConnectError } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";

/** Errors that are the caller's mistake on every file system. Clients expect all others as internal errors. */
const CALLERS_MISTAKE: ReadonlySet<string> = new Set(["ENAMETOOLONG", "ELOOP"]);

const ADVICE: Readonly<Record<string, string>> = {
  EXDEV: "they are on different file systems; copy it and remove the source",
};

/** An RPC error that says which operation failed and why. */
export function fileError(doing: string, error: unknown): ConnectError {
  const errno = errnoOf(error) ?? "";
  const advice = ADVICE[errno];
  const why = advice === undefined ? asError(error).message : `${asError(error).message}: ${advice}`;
  return new ConnectError(`${doing}: ${why}`, CALLERS_MISTAKE.has(errno) ? Code.InvalidArgument : Code.Internal);
}
