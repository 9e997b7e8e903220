import { Code, ConnectError } from "@connectrpc/connect";

/** Not built yet. */
export function getWatcherEvents(): never {
  throw new ConnectError("filesystem.Filesystem/GetWatcherEvents is not implemented by this agent yet", Code.Unimplemented);
}
