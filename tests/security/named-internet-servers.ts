// The servers of a simulated internet with names. Runs in its network namespace; reads what it is to serve from standard input.

import { createSocket } from "node:dgram";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer as createTcpServer } from "node:net";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode } from "dns-packet";
import type { TestName } from "./named-internet.ts";

interface About {
  readonly resolver: string;
  readonly names: Record<string, TestName>;
  readonly certificate: { readonly cert: string; readonly key: string };
  readonly controlPort: number;
}

const { resolver, names, certificate, controlPort } = JSON.parse(await text(process.stdin)) as About;
let asked: string[] = [];
const questions = new Map<string, number>();

const tell: RequestListener = (request, response) => {
  const { servername } = request.socket as TLSSocket;
  const { localAddress, localPort } = request.socket;
  let body = 0;
  request.on("data", (chunk: Buffer) => {
    body += chunk.length;
  });
  request.on("end", () => {
    const size = Number(new URL(request.url ?? "/", "http://x").searchParams.get("size") ?? 0);
    const told = JSON.stringify({ host: request.headers.host, servername, address: localAddress, port: localPort, body, url: request.url });
    const answer = size > 0 ? Buffer.alloc(size, "x") : Buffer.from(told);
    response.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
    response.end(answer);
  });
};

createHttpServer(tell).listen(80, "0.0.0.0");
createHttpsServer(certificate, tell).listen(443, "0.0.0.0");
createHttpServer((_request, response) => {
  response.end(JSON.stringify(asked));
  asked = [];
}).listen(controlPort, "0.0.0.0");

const udp = createSocket("udp4");
udp.on("message", (message, from) => udp.send(answer(message), from.port, from.address));
udp.bind(53, resolver);
createTcpServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", (data) => {
    const reply = answer(data.subarray(2));
    const length = Buffer.alloc(2);
    length.writeUInt16BE(reply.length);
    socket.end(Buffer.concat([length, reply]));
  });
}).listen(53, resolver);

function answer(message: Buffer): Buffer {
  const query = decode(message);
  const question = query.questions?.[0];
  if (!question) return message;
  const name = question.name.toLowerCase();
  asked.push(`${question.type} ${name}`);
  const answers = recordsOf(name, question.type);
  return encode({
    type: "response",
    id: query.id ?? 0,
    flags: AUTHORITATIVE_ANSWER | (answers ? 0 : 3),
    questions: query.questions ?? [],
    answers: answers ?? [],
  });
}

/** Undefined when there is no such name. The aliases of a name are followed, as a resolver does. */
function recordsOf(name: string, type: string): Answer[] | undefined {
  const found = names[name];
  if (!found) return undefined;
  if (found.alias !== undefined) {
    const alias: Answer = { type: "CNAME", name, ttl: 0, data: found.alias };
    return [alias, ...(recordsOf(found.alias, type) ?? [])];
  }
  if (type === "TXT" && found.text !== undefined) return [{ type: "TXT", name, ttl: 0, data: found.text }];
  const { addresses = [] } = found;
  if (type !== "A" || addresses.length === 0) return [];
  const count = questions.get(name) ?? 0;
  questions.set(name, count + 1);
  return (addresses[count % addresses.length] ?? []).map((data) => ({ type: "A", name, ttl: 0, data }));
}
