import { RelaySocket } from "@skerry/base";

const CONNECT_TIMEOUT_MS = 5_000;

/** A TCP connection, or the error that the kernel gave. */
export function openSocket(target: { host: string; port: number }, signal: AbortSignal | undefined): Promise<RelaySocket> {
  return new Promise((resolve, reject) => {
    const socket = new RelaySocket(target);
    const timer = setTimeout(() => finish(new Error(`no answer in ${CONNECT_TIMEOUT_MS} ms`)), CONNECT_TIMEOUT_MS);
    const onAbort = () => finish(new Error("the caller went away"));
    function finish(error?: Error): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.removeListener("error", finish);
      socket.removeListener("connect", onConnect);
      if (error) {
        socket.destroy();
        reject(error);
      } else resolve(socket);
    }
    const onConnect = () => finish();
    socket.once("error", finish);
    socket.once("connect", onConnect);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
  });
}
