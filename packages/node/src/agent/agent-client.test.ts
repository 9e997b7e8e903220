import { createServer, type Server, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { type AgentIdentity, initialiseAgent, untilHooksEnded } from "./agent-client.ts";

// Guests can put themselves in the agent's place: whatever is answered there, the node has to come back from it.

/** An address of this process: two runs of this file at the same time would share another. */
const ADDRESS = `127.77.${process.pid % 200}.${1 + (Math.floor(process.pid / 200) % 250)}`;
const identity: AgentIdentity = {
  sandboxId: "i0",
  templateId: "t",
  envVars: {},
  accessToken: "t",
  defaultUser: "user",
  defaultWorkdir: "",
  memoryMb: 256,
};
let server: Server | undefined;
const open = new Set<Socket>();

afterEach(async () => {
  for (const socket of open) socket.destroy();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
});

async function answerWith(text: string, options: { end: boolean }): Promise<void> {
  server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => (options.end ? socket.end(text) : socket.write(text)));
  });
  await new Promise<void>((resolve) => server?.listen(49_983, ADDRESS, resolve));
}

const initialise = (timeoutMs = 60_000) =>
  initialiseAgent({ address: ADDRESS, identity, currentToken: "", site: undefined, isNew: true, timeoutMs, isAlive: () => true });

it("takes 204 for an answer", async () => {
  await answerWith("HTTP/1.1 204 No Content\r\n\r\n", { end: true });
  expect(await initialise()).toEqual({ hooksRun: false });
});

it("hears that programs of the guest run, and waits for them", async () => {
  await answerWith("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", { end: true });
  expect(await initialise()).toEqual({ hooksRun: true });
  await untilHooksEnded(ADDRESS, "t");
});

it.each(["", "HTTP/1.1 2", "SSH-2.0-x\r\n", "HTTP/1.1 500 No\r\n\r\n"])(
  "does not fail when the wait for them ends with %j",
  async (text) => {
    await answerWith(text, { end: true });
    await untilHooksEnded(ADDRESS, "");
  },
);

it("does not fail when nobody is there to wait for", async () => {
  await untilHooksEnded(ADDRESS, "t");
});

it.each<[string, string, boolean]>([
  ["an upgrade", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", false],
  ["an upgrade that ends", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", true],
  ["nothing at all", "", true],
  ["half an answer", "HTTP/1.1 2", true],
  ["no HTTP", "SSH-2.0-x\r\n", false],
  ["a refusal", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", true],
  ["endless information", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100), true],
])("comes back from %s", async (_what, text, end) => {
  await answerWith(text, { end });
  await expect(initialise(300)).rejects.toMatchObject({ code: "agent_failed" });
});

it("gives up at once when the sandbox has ended", async () => {
  const started = Date.now();
  await expect(
    initialiseAgent({
      address: ADDRESS,
      identity,
      currentToken: "",
      site: undefined,
      isNew: true,
      timeoutMs: 120_000,
      isAlive: () => false,
    }),
  ).rejects.toThrow(/ended before/);
  expect(Date.now() - started).toBeLessThan(60_000);
});
