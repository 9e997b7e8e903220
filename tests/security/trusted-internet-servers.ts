// The servers of a simulated internet with certificates. Runs in its network namespace. Reads the servers from the first line of standard input,
// and writes each request to standard output. It repeats every other line of its input there: what was requested before is written by then.

import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createInterface } from "node:readline";
import type { TLSSocket } from "node:tls";

interface Server {
  readonly address: string;
  readonly cert: string;
  readonly key: string;
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const servers = JSON.parse((await lines.next()).value ?? "") as Server[];

const answer: RequestListener = (request, response) => {
  const { servername = "", localAddress: address = "", encrypted: isEncrypted = false } = request.socket as TLSSocket;
  const { method, url, headers } = request;
  process.stdout.write(`${JSON.stringify({ address, isEncrypted, servername, method, url, headers })}\n`);
  request.resume();
  request.on("end", () => response.end("hello"));
};

for (const { address, ...certificate } of servers) {
  await new Promise<void>((resolve) => createHttpsServer(certificate, answer).listen(443, address, resolve));
  await new Promise<void>((resolve) => createHttpServer(answer).listen(80, address, resolve));
}
process.stdout.write("ready\n");
for await (const line of lines) process.stdout.write(`${line}\n`);
