import { Code, ConnectError } from "@connectrpc/connect";

/** Not built yet. */
export function createWatcher(): never {
  throw new ConnectError("filesystem.Filesystem/CreateWatcher is not implemented by this agent yet", Code.Unimplemented);
}
