import { connect } from "node:net";

/** How a client disconnects after it has sent everything. */
export type Leave = "end" | "reset" | "stay" | "answered";

/**
 * Sends raw bytes. Returns what came back until the agent closed the connection, was silent for `quietMs`, or the client disconnected. With
 * "answered" the client stays, and the silence before the first byte of an answer does not count: for tests of what is answered.
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
    let timer = setTimeout(finish, leave === "answered" ? 60_000 : 5_000);
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
      if (leave !== "answered") wait();
      if (leave === "end") socket.end();
      if (leave === "reset") setImmediate(() => socket.resetAndDestroy());
    });
  });
}
