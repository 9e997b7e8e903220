import { Code, ConnectError } from "@connectrpc/connect";

/** Not built yet. */
export function removeWatcher(): never {
  throw new ConnectError("filesystem.Filesystem/RemoveWatcher is not implemented by this agent yet", Code.Unimplemented);
}
