// The servers of a simulated internet with certificates. They tell what was requested.

import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { TLSSocket } from "node:tls";
import { tellingInput } from "./telling-program.ts";
import type { TrustedServer } from "./trusted-internet.ts";

const { input: servers, tell, ready } = await tellingInput<readonly TrustedServer[]>();

const answer: RequestListener = (request, response) => {
  const { servername = "", localAddress: address = "", encrypted: isEncrypted = false } = request.socket as TLSSocket;
  const { method, url, headers } = request;
  tell({ address, isEncrypted, servername, method, url, headers });
  request.resume();
  request.on("end", () => response.end("hello"));
};

for (const { address, ...certificate } of servers) {
  await new Promise<void>((resolve) => createHttpsServer(certificate, answer).listen(443, address, resolve));
  await new Promise<void>((resolve) => createHttpServer(answer).listen(80, address, resolve));
}
ready();
