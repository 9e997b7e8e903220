import { Code, ConnectError } from "@connectrpc/connect";

/** Not built yet. */
export function watchDir(): never {
  throw new ConnectError("filesystem.Filesystem/WatchDir is not implemented by this agent yet", Code.Unimplemented);
}
