import { type Agent, type IncomingMessage, type RequestOptions, request as sendRequest } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import { responseFields } from "./http-fields.ts";

export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly options: RequestOptions;
  readonly agent: Agent;
}

/** Passes on a request that changes the protocol, such as to WebSocket, and then bytes in both directions. */
export function passUpgrade({ request, socket, head, options, agent }: Upgrade): void {
  const headers = options.headers as readonly string[];
  const protocol = request.headers.upgrade ?? "";
  const outgoing = sendRequest({ ...options, agent, headers: [...headers.slice(0, -2), "Connection", "Upgrade", "Upgrade", protocol] });
  socket.on("error", () => outgoing.destroy());
  socket.on("close", () => outgoing.destroy());
  outgoing.on("error", () => socket.destroy());
  outgoing.on("upgrade", (answer, upstream, rest: Buffer) => {
    const fields = [...responseFields(answer.rawHeaders), ["Connection", "Upgrade"], ["Upgrade", answer.headers.upgrade ?? protocol]];
    socket.write(headOf(answer, fields));
    if (rest.length > 0) socket.write(rest);
    if (head.length > 0) upstream.write(head);
    upstream.on("error", () => socket.destroy());
    upstream.on("close", () => socket.destroy());
    socket.on("close", () => upstream.destroy());
    upstream.pipe(socket);
    socket.pipe(upstream);
  });
  outgoing.on("response", (answer) => {
    socket.write(headOf(answer, [...responseFields(answer.rawHeaders), ["Connection", "close"]]));
    pipeline(answer, socket, () => socket.destroy());
  });
  outgoing.end();
}

function headOf({ statusCode, statusMessage }: IncomingMessage, fields: readonly (readonly string[])[]): string {
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}
