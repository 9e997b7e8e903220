import { once } from "node:events";
import { connect } from "node:net";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

/** One persistent HTTP/1.1 connection, as SDKs use them. */
async function openConnection(url: string) {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  return { socket, ended: once(socket, "end").then(() => text) };
}

const headOf = (path: string, apiKey: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${apiKey}\r\n`;

describeOnEachDatabase("stopping", { inSample: "sqlite" }, (api) => {
  const head = (path: string) => headOf(path, api().apiKey);

  it("answers what is under way, and waits for none of the connections that clients keep", async () => {
    const idle = await openConnection(api().url);
    idle.socket.write(`${head("/health")}\r\n`);
    const begun = await openConnection(api().url);
    begun.socket.write(head("/v2/sandboxes"));
    api().node.create = "hang";
    const create = api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    await waitUntil("the node was asked", () => api().node.countCalls("create") === 1);

    const closed = api().api.close();
    expect(await idle.ended).toContain("200 OK");
    begun.socket.write("\r\n");
    expect(await begun.ended).toMatch(/^HTTP\/1.1 200 OK\r\n.*connection: close.*\[\]$/is);
    api().node.create = "ok";
    api().node.release();
    expect(await create).toMatchObject({ status: 201, headers: { connection: "close" } });
    await closed;
  });
});

describeOnEachDatabase("stopping for no longer than it may take", { inSample: "sqlite", timing: { drainMs: 300 } }, (api) => {
  it("ends a client that has said half of its request", async () => {
    const { socket } = await openConnection(api().url);
    socket.write(headOf("/health", api().apiKey));
    const closed = once(socket, "close");
    // A later connection was accepted, so this one was accepted too.
    await api().call("GET", "/health");
    await api().api.close();
    await closed;
  });
});
