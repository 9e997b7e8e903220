import { connect } from "node:net";

/** How a client leaves once it has sent everything. */
export type Leave = "end" | "reset" | "stay";

/**
 * Sends bytes as they are, and answers with what came back until the agent closed, was silent for `quietMs`, or the client left.
 */
export function exchangeBytes(port: number, parts: readonly Uint8Array[], leave: Leave, quietMs = 60): Promise<Buffer> {
  return new Promise((resolve) => {
    const answer: Buffer[] = [];
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    const finish = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(answer));
    };
    let timer = setTimeout(finish, 5_000);
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(finish, quietMs);
    };
    socket.on("data", (chunk: Buffer) => {
      answer.push(chunk);
      wait();
    });
    socket.on("error", finish).on("end", finish).on("close", finish);
    socket.once("connect", () => {
      for (const part of parts) socket.write(part);
      wait();
      if (leave === "end") socket.end();
      if (leave === "reset") setImmediate(() => socket.resetAndDestroy());
    });
  });
}
