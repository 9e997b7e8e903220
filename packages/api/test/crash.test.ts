// Kills the API process at each point of each operation, and restarts it with the same database.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { databasesFor, sampleOf } from "@skerry/testkit/depth";
import { FakeNode } from "@skerry/testkit/fake-node";
import { waitUntil } from "@skerry/testkit/wait-until";
import { NodeService } from "@skerry/wire/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, startDatabases, type TestDatabases } from "./api-harness.ts";
import { KillableApi } from "./killable-api.ts";

const MOMENTS = sampleOf("moments of a crash of the API's process", ["before", "after"] as const, (when) => when === "after");
const IMAGE_CASES = sampleOf(
  "crashes of the API's process during images",
  [
    ["snapshots", "before"],
    ["snapshots", "after"],
    ["fork", "before"],
    ["fork", "after"],
  ] as const,
  ([what, when]) => (what === "fork") === (when === "before"),
);
const KILL_CASES = sampleOf(
  "crashes of the API's process during kills",
  [
    ["running", "kill", "before"],
    ["running", "kill", "after"],
    ["paused", "kill", "before"],
    ["paused", "deleteImage", "before"],
    ["paused", "deleteImage", "after"],
  ] as const,
  ([, method, when]) => (method === "kill") === (when === "after"),
);

describe.each(databasesFor("crashes of the API's process", "postgres"))("an API whose process is killed (%s)", (kind) => {
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
    server = createServer(connectNodeAdapter({ routes: (router) => router.service(NodeService, node.service) }));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    api = await KillableApi.over(await databases.create(kind), node, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    await api[Symbol.asyncDispose]();
    node.release();
    server.closeAllConnections();
    server.close();
  });

  const stateOf = async (id: string) => (await api.store.sandboxes.find(id))?.state;
  const imagesLeft = async () => [
    ...(await api.store.images.listUnsettled("creating", 9)),
    ...(await api.store.images.listUnsettled("deleting", 9)),
  ];
  const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) => api.call("POST", path, { body, headers });
  const paused = async () => {
    const id = await api.create();
    expect((await post(`/sandboxes/${id}/pause`)).status).toBe(204);
    return id;
  };

  /** Kills the process before or after the node has carried out `method`, and starts another process. */
  async function killAt(
    method: "create" | "setOptions" | "pause" | "resume" | "snapshot" | "kill" | "deleteImage",
    when: "before" | "after",
    begin: () => Promise<Answer>,
  ) {
    const calls = node.countCalls(method);
    if (when === "before") node[method] = "hang";
    else node.lost.set(method, "hang");
    const answer = begin().catch((error: unknown) => error);
    await waitUntil("the node is at it", () => node.countCalls(method) > calls && node.hanging > 0);
    await api.kill();
    await answer;
    // The node drops a call that it has not carried out when the caller disconnects.
    if (when === "before") await waitUntil("the node has given up", () => node.hanging === 0);
    node[method] = "ok";
    node.lost.clear();
    node.release();
    await api.begin();
  }

  it.each(MOMENTS)("%s its node has made a sandbox: nothing is left", async (when) => {
    await killAt("create", when, () => post("/v2/sandboxes", { templateID: "base" }));
    await waitUntil("nothing is left", () => node.held.size === 0);
    expect((await api.call("GET", "/v2/sandboxes")).body).toEqual([]);
  });

  it("before its node has paused a sandbox: it runs, and can be paused", async () => {
    const id = await api.create();
    await killAt("pause", "before", () => post(`/sandboxes/${id}/pause`));
    await waitUntil("it is settled", async () => (await stateOf(id)) === "running");
    await waitUntil("no image is left", async () => (await imagesLeft()).length === 0);
    expect((await post(`/sandboxes/${id}/pause`)).status).toBe(204);
    expect(node.images.size).toBe(1);
  });

  it("after its node has paused a sandbox: it is paused, and can be resumed", async () => {
    const id = await api.create();
    await killAt("pause", "after", () => post(`/sandboxes/${id}/pause`));
    await waitUntil("it is settled", async () => (await stateOf(id)) === "paused");
    expect((await api.call("GET", `/sandboxes/${id}`)).body).toMatchObject({ state: "paused", pauseMode: "full" });
    expect((await post(`/v2/sandboxes/${id}/connect`)).status).toBe(201);
    await waitUntil("no image is left", async () => node.images.size === 0 && (await imagesLeft()).length === 0);
  });

  it("before its node has resumed a sandbox: it is paused, and can be resumed or killed", async () => {
    const id = await paused();
    await killAt("resume", "before", () => post(`/v2/sandboxes/${id}/connect`));
    await waitUntil("it is settled", async () => (await stateOf(id)) === "paused");
    expect((await post(`/v2/sandboxes/${id}/connect`)).status).toBe(201);
  });

  it("after its node has resumed a sandbox: it runs for the time that was asked for", async () => {
    const id = await paused();
    await killAt("resume", "after", () => post(`/v2/sandboxes/${id}/connect`, { timeout: 700 }));
    await waitUntil("it is settled", async () => (await stateOf(id)) === "running");
    const { body } = await api.call("GET", `/sandboxes/${id}`);
    expect(Math.abs(Date.parse(body.endAt) - Date.now() - 700_000)).toBeLessThan(60_000);
    await waitUntil("no image is left", async () => (await imagesLeft()).length === 0);
    expect((await post(`/sandboxes/${id}/pause`)).status).toBe(204);
  });

  it.each(MOMENTS)("%s its node has changed the network: the node has what the database has", async (when) => {
    const id = await api.create();
    const change = (denyOut: string[]) => api.call("PUT", `/sandboxes/${id}/network`, { body: { denyOut } });
    await killAt("setOptions", when, () => change(["1.1.1.1"]));
    await waitUntil("the node has it", () => node.held.get(id)?.spec.options?.denyOut[0] === "1.1.1.1");
    await waitUntil("it is settled", async () => (await api.store.sandboxes.changes.listUnsettled("node1", 9)).length === 0);
    expect((await api.call("GET", `/sandboxes/${id}`)).body).toMatchObject({ network: { denyOut: ["1.1.1.1"] } });
    expect((await change(["2.2.2.2"])).status).toBe(204);
  });

  it.each(IMAGE_CASES)("in %s, %s its node has taken the image: the sandbox runs, and no image is left", async (what, when) => {
    const id = await api.create();
    await killAt("snapshot", when, () => post(`/sandboxes/${id}/${what}`));
    await waitUntil("it is settled", async () => (await stateOf(id)) === "running");
    await waitUntil("no image is left", async () => node.images.size === 0 && (await imagesLeft()).length === 0);
    expect((await api.call("GET", "/snapshots")).body).toEqual([]);
    expect((await post(`/sandboxes/${id}/${what}`)).status).toBe(201);
  });

  it("in a fork of a paused sandbox: it is paused", async () => {
    const id = await paused();
    await killAt("snapshot", "after", () => post(`/sandboxes/${id}/fork`));
    await waitUntil("it is settled", async () => (await stateOf(id)) === "paused");
    await waitUntil("one image is left", async () => node.images.size === 1 && (await imagesLeft()).length === 0);
    expect((await post(`/v2/sandboxes/${id}/connect`)).status).toBe(201);
  });

  it("while forks are started: neither they nor the image are left", async () => {
    const id = await api.create();
    await killAt("create", "after", () => post(`/sandboxes/${id}/fork`, { count: 3 }));
    await waitUntil("they are gone", () => node.held.size === 1 && node.images.size === 0);
    expect(await stateOf(id)).toBe("running");
  });

  it.each(KILL_CASES)("while it kills a %s sandbox, at its node's %s, %s that: nothing is left", async (state, method, when) => {
    const id = state === "paused" ? await paused() : await api.create();
    await waitUntil("no image is being deleted", async () => (await imagesLeft()).length === 0);
    await killAt(method, when, () => api.call("DELETE", `/sandboxes/${id}`));
    await waitUntil("it has ended", async () => (await stateOf(id)) === "ended");
    expect(await api.store.sandboxes.find(id)).toMatchObject({ endReason: "request", endActor: expect.stringMatching(/^key:/) });
    await waitUntil("nothing is left", async () => node.held.size === 0 && node.images.size === 0 && (await imagesLeft()).length === 0);
    expect((await api.call("GET", `/sandboxes/${id}`)).body.message).toMatch(/It ended at .*: request$/);
  });

  it("while it pauses what is over its time: none is lost", async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => api.create({ autoPause: true })));
    await killAt("pause", "after", async () => {
      const now = Date.now();
      await Promise.all(ids.map((id) => api.store.sandboxes.setEnd(id, { endAt: now, now, onlyLater: false })));
      return await api.call("GET", "/health");
    });
    await waitUntil("all are paused", async () => (await Promise.all(ids.map(stateOf))).every((state) => state === "paused"));
    expect(node.images.size).toBe(6);
  });

  it.each(["create", "snapshot"] as const)("and a request with a key is sent again: it is done once (%s)", async (what) => {
    const id = await api.create();
    const [path, body] = what === "create" ? ["/v2/sandboxes", { templateID: "base" }] : [`/sandboxes/${id}/snapshots`, {}];
    const ask = () => post(path, body, { "Idempotency-Key": "k-1" });
    await killAt(what, "after", ask);
    await waitUntil("the sandbox is settled", async () => (await stateOf(id)) === "running");
    const again = await ask();
    expect(again.status).toBe(201);
    expect((await ask()).body).toEqual(again.body);
    await waitUntil(
      "there is one more",
      () => node.held.size === (what === "create" ? 2 : 1) && node.images.size === (what === "create" ? 0 : 1),
    );
  });
});
