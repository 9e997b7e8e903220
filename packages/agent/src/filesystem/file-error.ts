import { Code, ConnectError } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";

/** What no file system would take from anybody. Clients know the other failures as internal ones. */
const CALLERS_MISTAKE: ReadonlySet<string> = new Set(["ENAMETOOLONG", "ELOOP"]);

const MENDS: Readonly<Record<string, string>> = {
  EXDEV: "they are on different file systems; copy it and remove the source",
};

/** What was being done, and why the file system refused it. */
export function fileError(doing: string, error: unknown): ConnectError {
  const errno = errnoOf(error) ?? "";
  const mend = MENDS[errno];
  const why = mend === undefined ? asError(error).message : `${asError(error).message}: ${mend}`;
  return new ConnectError(`${doing}: ${why}`, CALLERS_MISTAKE.has(errno) ? Code.InvalidArgument : Code.Internal);
}
