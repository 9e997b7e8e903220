// The way to servers that listen only on a sandbox's own 127.0.0.1 or ::1: the agent connects to them, on CONNECT.

import type { RelaySocket } from "@skerry/base";
import { AGENT_PORT } from "@skerry/wire";
import { openSocket } from "./open-socket.ts";

const ANSWER_TIMEOUT_MS = 5_000;
/** The agent's answer has 19 bytes; whatever runs in its place gets no more of our memory than this. */
const MAX_ANSWER_BYTES = 1024;
const END_OF_HEAD = "\r\n\r\n";

/** Undefined: no server listens there either, or the agent doesn't answer. */
export async function openLocalhost(
  target: { host: string; port: number },
  signal: AbortSignal | undefined,
): Promise<RelaySocket | undefined> {
  const socket = await openSocket({ host: target.host, port: AGENT_PORT }, signal).catch(() => undefined);
  if (!socket) return undefined;
  socket.on("error", ignore);
  socket.write(`CONNECT localhost:${target.port} HTTP/1.1\r\nHost: localhost:${target.port}\r\n\r\n`);
  const accepted = await isAccepted(socket, signal);
  socket.removeListener("error", ignore);
  if (accepted && !socket.destroyed) return socket;
  socket.destroy();
  return undefined;
}

/** Reads the head of the answer, and not one byte more than that. */
function isAccepted(socket: RelaySocket, signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    let answer: Buffer = Buffer.alloc(0);
    const timer = setTimeout(() => finish(false), ANSWER_TIMEOUT_MS);
    const onEnd = () => finish(false);
    function finish(accepted: boolean): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onEnd);
      socket.removeListener("readable", onReadable).removeListener("end", onEnd).removeListener("close", onEnd);
      resolve(accepted);
    }
    function onReadable(): void {
      for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
        answer = Buffer.concat([answer, chunk]);
        const end = answer.indexOf(END_OF_HEAD);
        if (end < 0 && answer.length <= MAX_ANSWER_BYTES) continue;
        const rest = answer.subarray(end + END_OF_HEAD.length);
        if (end >= 0 && rest.length > 0) socket.unshift(rest);
        finish(end >= 0 && answer.toString("latin1").startsWith("HTTP/1.1 200"));
        return;
      }
    }
    socket.on("readable", onReadable).once("end", onEnd).once("close", onEnd);
    signal?.addEventListener("abort", onEnd, { once: true });
    if (signal?.aborted) onEnd();
  });
}

function ignore(): void {}
