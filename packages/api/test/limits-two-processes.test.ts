// Two API processes with one database count the sandboxes of a team together, also when one of them is killed in the middle.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { scaled } from "@skerry/testkit/depth";
import { FakeNode } from "@skerry/testkit/fake-node";
import { waitUntil } from "@skerry/testkit/wait-until";
import { NodeService } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startDatabases, type TestDatabases } from "./api-harness.ts";
import { KillableApi } from "./killable-api.ts";

const MAX = 5;
const ROUNDS = scaled("rounds of creates over two processes", { sample: 2, full: 10 });

describe.each(["sqlite", "postgres"] as const)("the limit of a team in two API processes (%s)", (kind) => {
  let databases: TestDatabases;
  let node: FakeNode;
  let server: Server;
  let first: KillableApi;
  let second: KillableApi;
  beforeAll(async () => {
    databases = await startDatabases();
  });
  afterAll(async () => await databases[Symbol.asyncDispose]());
  beforeEach(async () => {
    node = new FakeNode("node1");
    server = createServer(connectNodeAdapter({ routes: (router) => router.service(NodeService, node.service) }));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const nodeUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    first = await KillableApi.over(await databases.create(kind), node, nodeUrl, { MAX_SANDBOXES: String(MAX) });
    second = await first.another("api-process-2");
  });
  afterEach(async () => {
    await second.kill();
    await first[Symbol.asyncDispose]();
    node.release();
    server.closeAllConnections();
    server.close();
  });

  const running = async () => (await first.store.limits.useOfTeam(first.teamId)).running.count;
  const call = (at: number, method: string, path: string, body?: object) =>
    first.call(method, path, { url: (at % 2 ? second : first).url, ...(body ? { body } : {}) });
  const create = (at: number) => call(at, "POST", "/v2/sandboxes", { templateID: "base" });

  it("is exact for creates, resumes and forks at the same time", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const paused = (await create(0)).body.sandboxID;
      expect((await call(1, "POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
      const source = (await create(1)).body.sandboxID;
      const forks = call(0, "POST", `/sandboxes/${source}/fork`, { count: 3 });
      const resume = call(1, "POST", `/v2/sandboxes/${paused}/connect`);
      const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => create(at)));
      const forked: { sandbox?: object }[] = (await forks).body;
      const resumed = (await resume).status === 201 ? 1 : 0;
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 429]));
      const created = answers.filter(({ status }) => status === 201).length;
      expect(1 + created + resumed + forked.filter(({ sandbox }) => sandbox).length).toBe(MAX);
      expect(await running()).toBe(MAX);
      const { body } = await call(0, "GET", "/v2/sandboxes?limit=100");
      await Promise.all(body.map(({ sandboxID }: { sandboxID: string }, at: number) => call(at, "DELETE", `/sandboxes/${sandboxID}`)));
      expect(await running()).toBe(0);
    }
  });

  it("neither loses nor keeps a place when a process is killed while it creates", async () => {
    node.create = "hang";
    const lost = Array.from({ length: 3 }, () => create(0).catch(() => undefined));
    await waitUntil("the node is at it", () => node.hanging === 3);
    await first.kill();
    await Promise.all(lost);
    node.create = "ok";
    node.release();
    // The rows of the killed process count until it is known that nobody continues its creates.
    const answers = await Promise.all(Array.from({ length: 8 }, () => create(1)));
    expect(answers.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(MAX);
    expect(await running()).toBeLessThanOrEqual(MAX);
    await first.begin();
    await waitUntil("the team has its places again", async () => {
      while ((await create(1)).status === 201);
      return node.held.size === MAX && (await running()) === MAX;
    });
  });
});
