// SOCKS5 proxies (RFC 1928 and 1929) of a simulated internet: one that works, the same with TLS, and hostile ones. Tells what it was asked.

import { connect, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { SocksProxyAbout } from "./socks-proxy.ts";
import { tellingInput } from "./telling-program.ts";

const { input, tell, ready } = await tellingInput<SocksProxyAbout>();
const { address, names, username, password, ports, certificate } = input;

async function serve(socket: Socket, isEncrypted: boolean): Promise<void> {
  const read = reader(socket);
  const [, count = 0] = await read(2);
  const methods = [...(await read(count))];
  if (!methods.includes(2)) {
    tell({ event: "anonymous" });
    return void socket.end(Buffer.from([5, 255]));
  }
  socket.write(Buffer.from([5, 2]));
  const [, nameLength = 0] = await read(2);
  const user = (await read(nameLength)).toString();
  const [passwordLength = 0] = await read(1);
  const isRight = user === username && (await read(passwordLength)).toString() === password;
  if (!isRight) {
    tell({ event: "wrong password" });
    return void socket.end(Buffer.from([1, 1]));
  }
  socket.write(Buffer.from([1, 0]));
  const [, , , kind = 0] = await read(4);
  const host = kind === 3 ? (await read((await read(1))[0] ?? 0)).toString() : [...(await read(4))].join(".");
  const port = (await read(2)).readUInt16BE(0);
  tell({ event: "connect", kind: kind === 3 ? "name" : "address", host, port, isEncrypted });
  const to = kind === 3 ? names[host] : host;
  const failed = (code: number) => socket.end(Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]));
  if (to === undefined) return void failed(4);
  const target = connect({ host: to, port, localAddress: address });
  target.on("error", () => failed(5));
  target.on("connect", () => {
    const early = read.rest();
    // In one packet with the first bytes of a server that speaks first.
    const greeting = port === ports.greeting ? Buffer.from("hello\n") : Buffer.alloc(0);
    socket.write(Buffer.concat([Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]), greeting]));
    target.write(early);
    socket.pipe(target).pipe(socket);
  });
}

/** Reads exactly so many bytes. */
function reader(socket: Socket) {
  let bytes = Buffer.alloc(0);
  let wake = () => {};
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    wake();
  };
  socket.on("data", onData);
  const read = async (size: number): Promise<Buffer> => {
    while (bytes.length < size) await new Promise<void>((resolve) => (wake = resolve));
    const taken = bytes.subarray(0, size);
    bytes = bytes.subarray(size);
    return taken;
  };
  read.rest = () => {
    socket.off("data", onData);
    return bytes;
  };
  return read;
}

function listen(port: number, answer: (socket: Socket) => void): void {
  createServer((socket) => {
    socket.on("error", () => {});
    answer(socket);
  }).listen(port, address);
}

listen(ports.socks, (socket) => void serve(socket, false));
createTlsServer({ ...certificate }, (socket) => {
  socket.on("error", () => {});
  void serve(socket, true);
})
  .on("tlsClientError", () => {})
  .listen(ports.tls, address);
// Each of them tells what it heard.
for (const [port, reply] of [
  [ports.garbage, (socket: Socket) => socket.write(Buffer.alloc(1_000, 7))],
  [ports.reset, (socket: Socket) => socket.resetAndDestroy()],
  [ports.silent, () => {}],
  [ports.huge, (socket: Socket) => flood(socket)],
] as const) {
  listen(port, (socket) => {
    socket.on("data", (data: Buffer) => tell({ event: "heard", port, text: data.toString("latin1") }));
    reply(socket);
  });
}
createServer((socket) => void socket.on("error", () => {}).resume()).listen(ports.greeting, "0.0.0.0");
ready();

/** A right beginning, and a last answer that never ends. */
function flood(socket: Socket): void {
  socket.write(Buffer.from([5, 2, 1, 0, 5, 0, 0, 3, 255]));
  const more = () => {
    while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 1)));
    socket.once("drain", more);
  };
  more();
}
