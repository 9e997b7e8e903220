import { expect, test } from "vitest";
import { hostOf, RawClient, waitFor } from "./client.ts";
import { Faults } from "./faults.ts";
import { createWorld } from "./parts.ts";

const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

test.each([
  ["a request", "\r\n"],
  ["an upload that was not whole", "Content-Length: 10\r\n\r\nabc"],
  ["an upgrade that was declined", "Connection: Upgrade\r\nUpgrade: x\r\n\r\n"],
])("a server that keeps its connection after the answer to %s does not keep ours", async (_name, rest) => {
  using faults = new Faults();
  await using world = await createWorld("direct");
  await world.serveTcp(3000, (socket) => {
    socket.resume();
    socket.once("data", () => socket.write(ANSWER));
  });
  const client = new RawClient(world.port).send(`POST / HTTP/1.1\r\nHost: ${hostOf(3000)}\r\n${rest}`);
  await client.until("ok");
  await waitFor(() => (world.sandboxes.sockets.size === 0 ? true : undefined), "the sandbox's connection to close", 1_000);
  client.socket.destroy();
  expect(faults.seen).toEqual([]);
});
