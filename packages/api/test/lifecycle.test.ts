import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { RouteService } from "@skerry/wire/control";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("the life of sandboxes", { inSample: "postgres" }, (api) => {
  const stateOf = async (id: string) => (await api().store.sandboxes.find(id))?.state;
  const isEnded = (id: string) => async () => (await stateOf(id)) === "ended";
  const entries = async () => {
    const rows = await Promise.all(api().node.calls.map(({ sandboxId }) => api().store.sandboxes.find(sandboxId)));
    return rows.filter((row) => row !== undefined);
  };

  it("ends when its time is over, and not before", async () => {
    const id = await api().create({ timeout: 1 });
    const endAt = Date.parse((await api().call("GET", `/sandboxes/${id}`)).body.endAt);
    await waitUntil("it is gone", async () => (await api().call("GET", `/sandboxes/${id}`)).status === 404);
    expect(Date.now()).toBeGreaterThanOrEqual(endAt);
    await waitUntil("its entry ended", isEnded(id));
    expect(await api().store.sandboxes.find(id)).toMatchObject({ endReason: "timeout" });
    expect(api().node.held.size).toBe(0);
  });

  it("ends at once when its time is set to 0, and does not come back", async () => {
    const id = await api().create();
    expect((await api().call("POST", `/sandboxes/${id}/timeout`, { body: { timeout: 0 } })).status).toBe(204);
    expect([404, 409]).toContain((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status);
    await waitUntil("its entry ended", isEnded(id));
  });

  it("ends for many at once, however slow their node is", async () => {
    api().node.killDelayMs = 300;
    const ids = await Promise.all(Array.from({ length: 100 }, () => api().create()));
    const now = Date.now();
    await Promise.all(ids.map((id) => api().store.sandboxes.setEnd(id, { endAt: now + 200, now, onlyLater: false })));
    // One after the other, their kills would take 30 s.
    await waitUntil("none is listed", async () => (await api().call("GET", "/v2/sandboxes")).body.length === 0, 20_000);
    await waitUntil("the node holds none", () => api().node.held.size === 0);
    for (const id of ids) expect(api().node.countCalls("kill", id)).toBe(1);
  });

  it("survives a kill that fails: it is tried again until it succeeds", async () => {
    const id = await api().create();
    api().node.kill = Code.Internal;
    const failed = await api().call("DELETE", `/sandboxes/${id}`);
    expect(failed.body).toEqual({ code: 500, message: "Error killing sandbox: the platform retries until it succeeds" });
    expect(failed.headers["should-retry"]).toBe("false");
    api().node.kill = Code.Unavailable;
    const unreachable = await api().call("DELETE", `/sandboxes/${id}`);
    expect(unreachable.status).toBe(503);
    expect(unreachable.headers["should-retry"]).toBe("true");
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(404);
    api().node.kill = "ok";
    await waitUntil("its entry ended", isEnded(id));
    expect(api().node.held.size).toBe(0);
  });

  it("has one kill for all who ask for it", async () => {
    const id = await api().create();
    api().node.kill = "hang";
    let arrived = 0;
    api().api.fastify.server.on("request", () => {
      arrived += 1;
    });
    const kills = Array.from({ length: 10 }, () => api().call("DELETE", `/sandboxes/${id}`));
    await waitUntil("all have arrived", () => arrived >= 10 && api().node.countCalls("kill", id) > 0);
    // Callers that have read the entry by now wait. Later callers may find the kill complete, or call the node once more, which is harmless.
    await sleep(300);
    api().node.kill = "ok";
    api().node.release();
    expect((await Promise.all(kills)).map(({ status }) => status)).toEqual(Array(10).fill(204));
    expect(api().node.countCalls("kill", id)).toBe(1);
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(404);
  });

  it("can be ended while it begins", async () => {
    api().node.create = "hang";
    const create = api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    await waitUntil("the node was asked", () => api().node.held.size === 1);
    const [id = ""] = [...api().node.held.keys()];
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(404);
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    api().node.release();
    expect((await create).body).toEqual({ code: 409, message: `Sandbox "${id}" is being killed` });
    await waitUntil("its entry ended", isEnded(id));
    expect(api().node.held.size).toBe(0);
  });

  it.each([
    [Code.Internal, 500, "false", "sandbox_create_failed"],
    [Code.Unavailable, 503, "false", "sandbox_capacity_unavailable"],
    [Code.ResourceExhausted, 503, "true", "sandbox_capacity_unavailable"],
    ["hang" as const, 504, "false", "sandbox_placement_timeout"],
  ])("leaves nothing when its node answers a create with %s", async (behaviour, status, shouldRetry, errorCode) => {
    api().node.create = behaviour;
    api().node.leavesHalfMade = true;
    const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual({ code: status, message: expect.stringMatching(/^Failed to place sandbox/), error_code: errorCode });
    expect(answer.text).not.toContain("secret");
    expect(answer.headers["should-retry"]).toBe(shouldRetry);
    await waitUntil("the node holds nothing", () => api().node.held.size === 0);
    await waitUntil("its entry ended", async () => (await entries()).every((row) => row.state === "ended"));
    expect((await entries())[0]).toMatchObject({ endReason: "create_failed" });
  });

  it("shows the caller what a node has against the request itself", async () => {
    api().node.create = Code.InvalidArgument;
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } })).status).toBe(400);
  });

  it("is not begun when its caller hangs up", async () => {
    api().node.create = "hang";
    const { hostname, port } = new URL(api().url);
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    const body = '{"templateID":"base"}';
    socket.write(`POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: ${api().apiKey}\r\nContent-Type: application/json\r\n`);
    socket.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
    await waitUntil("the node was asked", () => api().node.held.size === 1);
    const [id = ""] = [...api().node.held.keys()];
    socket.destroy();
    await waitUntil("its entry ended", isEnded(id));
    expect(await api().store.sandboxes.find(id)).toMatchObject({ endReason: "caller_gone" });
    expect(api().node.held.size).toBe(0);
  });

  it("is routed to while it runs, and not after its time", async () => {
    const { routeService } = api().api;
    const routes = createClient(
      RouteService,
      createRouterTransport(({ service }) => {
        service(RouteService, routeService);
      }),
    );
    const id = await api().create();
    expect(await routes.findRoute({ sandboxId: id })).toMatchObject({ nodeId: "node1", nodeUrl: "http://node1.test" });
    await api().call("POST", `/sandboxes/${id}/timeout`, { body: { timeout: 0 } });
    for (const sandboxId of [id, "iunknown", "../x", "", "a\0b"]) {
      await expect(routes.findRoute({ sandboxId })).rejects.toMatchObject({ code: Code.NotFound });
    }
  });
});

describeOnEachDatabase("placement", { inSample: "postgres", nodes: 3 }, (api) => {
  it("spreads sandboxes over nodes", async () => {
    for (let i = 0; i < 6; i += 1) await api().create();
    expect(api().nodes.map((node) => node.held.size)).toEqual([2, 2, 2]);
  });
});

describeOnEachDatabase("a platform without nodes", { inSample: "postgres", nodes: 0 }, (api) => {
  it("says that it has no room", async () => {
    const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect(answer.body).toEqual({
      code: 503,
      message: "Failed to place sandbox: there is no machine to run it",
      error_code: "sandbox_capacity_unavailable",
    });
    expect(answer.headers["should-retry"]).toBe("true");
  });
});
