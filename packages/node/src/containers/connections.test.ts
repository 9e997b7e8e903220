import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { RelaySocket } from "@skerry/base";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Connections } from "./connections.ts";

let server: Server;
beforeAll(async () => {
  server = createServer((peer) => peer.on("error", () => {})).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.close();
});

function socket(): RelaySocket {
  const opened = new RelaySocket({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  return opened.on("error", () => {});
}

it("waits for connections that are being opened, and for those that were opened just now", async () => {
  const connections = new Connections();
  const opening = Promise.withResolvers<RelaySocket>();
  const opened = connections.open(() => opening.promise);
  let hasSettled = false;
  const settled = connections.settle().then(() => {
    hasSettled = true;
  });
  await new Promise(setImmediate);
  expect(hasSettled).toBe(false);
  const openedAt = performance.now();
  const one = socket();
  opening.resolve(one);
  await Promise.all([opened, settled]);
  expect(performance.now() - openedAt).toBeGreaterThan(50);
  one.destroy();
});

it("does not wait for ever, nor for connections of long ago or that failed", async () => {
  const connections = new Connections();
  await connections.settle();
  await expect(connections.open(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  await connections.settle();
  void connections.open(() => new Promise<RelaySocket>(() => {}));
  await connections.settle();
});

it("holds and resets what is open", async () => {
  const connections = new Connections();
  const [first, second, gone] = [socket(), socket(), socket()];
  await connections.open(async () => first);
  await connections.open(async () => gone);
  gone.destroy();
  await once(gone, "close");
  const letGo = connections.hold();
  await connections.open(async () => second);
  expect([first, second, gone].map(({ writableCorked }) => writableCorked)).toEqual([1, 0, 0]);
  letGo();
  expect(first.writableCorked).toBe(0);
  connections.reset();
  expect([first.destroyed, second.destroyed]).toEqual([true, true]);
});
