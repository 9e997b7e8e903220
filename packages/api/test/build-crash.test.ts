// Kills the API process at each point of a build, and restarts it with the same database.

import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { databasesFor } from "@skerry/testkit/depth";
import { FakeNode } from "@skerry/testkit/fake-node";
import { waitUntil } from "@skerry/testkit/wait-until";
import { NodeService } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startDatabases, type TestDatabases } from "./api-harness.ts";
import { begun, ended, type Ids, requestBuild, startBuild, statusOf } from "./build-calls.ts";
import { KillableApi } from "./killable-api.ts";

describe.each(databasesFor("crashes during builds", "sqlite"))("a build whose API is killed (%s)", (kind) => {
  let databases: TestDatabases;
  let node: FakeNode;
  let server: Server;
  let api: KillableApi;
  beforeAll(async () => {
    databases = await startDatabases();
  });
  afterAll(async () => await databases[Symbol.asyncDispose]());
  beforeEach(async () => {
    node = new FakeNode("node1");
    node.builds.holds = true;
    server = createServer(connectNodeAdapter({ routes: (router) => router.service(NodeService, node.service) }));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    api = await KillableApi.over(await databases.create(kind), node, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    await api[Symbol.asyncDispose]();
    node.builds.release();
    server.closeAllConnections();
    server.close();
  });

  const messagesOf = async (ids: Ids) => ((await statusOf(api, ids)).logEntries as { message: string }[]).map(({ message }) => message);
  const forgotten = async (ids: Ids) => {
    await waitUntil("the node has forgotten it", () => !node.builds.held.has(ids.buildID));
    await waitUntil("nothing is left to do", async () => (await api.store.builds.find(ids.buildID))?.nodeId === undefined);
  };

  async function killAt(hangs: "start" | "started" | "forget", body?: object, end?: (ids: Ids) => void): Promise<Ids> {
    node.builds.hangs = hangs;
    const ids = await startBuild(api, "web", body);
    if (end) {
      await begun(api, ids);
      end(ids);
    }
    await waitUntil("the node is at it", () => node.builds.hanging > 0);
    await api.kill();
    await waitUntil("the node has given up", () => node.builds.hanging === 0);
    node.builds.release();
    await api.begin();
    return ids;
  }

  it.each(["start", "started"] as const)("at its %s is carried out once", async (hangs) => {
    const ids = await killAt(hangs);
    await begun(api, ids);
    node.builds.say(ids.buildID, "one");
    node.builds.succeed(ids.buildID);
    expect((await ended(api, ids)).status).toBe("ready");
    expect((await messagesOf(ids)).filter((message) => message === "one")).toHaveLength(1);
    expect(node.builds.started).toHaveLength(1);
    await forgotten(ids);
  });

  it("before its node had the credentials fails, and says what to do", async () => {
    const fromImageRegistry = { type: "registry", username: "u", password: "p" };
    const ids = await killAt("start", { fromImage: "r.example/x", fromImageRegistry });
    const reason = { message: expect.stringMatching(/does not store the credentials.*Start the build again$/), step: "base" };
    expect(await ended(api, ids)).toMatchObject({ status: "error", reason });
    expect(node.builds.started).toEqual([]);
    await forgotten(ids);
  });

  it("in the middle has every line once", async () => {
    const ids = await startBuild(api, "web");
    await begun(api, ids);
    const expected: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let each = 0; each < 5; each += 1) {
        expected.push(`line ${expected.length}`);
        node.builds.say(ids.buildID, expected.at(-1) ?? "");
      }
      if (round < 2) await waitUntil("a line is there", async () => (await messagesOf(ids)).length > round * 5);
      await api.kill();
      if (round === 2) node.builds.succeed(ids.buildID);
      await api.begin();
    }
    expect((await ended(api, ids)).status).toBe("ready");
    expect(await messagesOf(ids)).toEqual(expected);
    await forgotten(ids);
  });

  it("before its node forgets it is forgotten later", async () => {
    const ids = await killAt("forget", undefined, ({ buildID }) => node.builds.succeed(buildID));
    expect((await statusOf(api, ids)).status).toBe("ready");
    await forgotten(ids);
  });

  it("together with its node starts again and ends", async () => {
    const ids = await startBuild(api, "web");
    await begun(api, ids);
    await api.kill();
    node.builds.restart();
    await api.begin();
    await begun(api, ids);
    node.builds.succeed(ids.buildID);
    expect((await ended(api, ids)).status).toBe("ready");
    expect(node.builds.started).toHaveLength(2);
    await forgotten(ids);
  });

  it("during an upload leaves nothing of it", async () => {
    const { templateID } = await requestBuild(api, "web");
    const { body } = await api.call("GET", `/templates/${templateID}/files/${"a".repeat(64)}`);
    const url = new URL(body.url);
    const socket = connect(Number(url.port), url.hostname).on("error", () => {});
    socket.write(`PUT ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nContent-Length: 100\r\n\r\nx`);
    const staged = async () => await readdir(join(await api.blobsDir, "staging"));
    await waitUntil("it is under way", async () => (await staged()).length === 1);
    await api.kill();
    await api.begin();
    expect(await staged()).toEqual([]);
    expect((await api.call("GET", `/templates/${templateID}/files/${"a".repeat(64)}`)).body.present).toBe(false);
  });
});
