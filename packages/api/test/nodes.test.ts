import { randomUUID } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { NodeDetailSchema, NodeSchema } from "../src/http/routes/nodes/node-bodies.ts";
import { requestBuild } from "./build-calls.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("the operator", { inSample: "both", nodes: 2 }, (api) => {
  const call = (method: string, path: string, body?: unknown) =>
    api().call(method, path, { key: null, headers: { "X-Admin-Token": api().adminToken }, ...(body === undefined ? {} : { body }) });
  const set = async (nodeId: string, status: string) => (await call("POST", `/nodes/${nodeId}`, { status })).status;
  const nodesOf = async () => (await call("GET", "/nodes")).body as { id: string; status: string; sandboxCount: number }[];
  const placed = async (body: object = {}) => {
    const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });
    if (answer.status !== 201) return `${answer.status} ${answer.body.error_code}`;
    return api().nodes.find(({ held }) => held.has(answer.body.sandboxID))?.nodeId;
  };

  it("sees the nodes, with what runs on them and how they fare", async () => {
    await api().create();
    await api().create();
    const listed = await nodesOf();
    for (const node of listed) expect(Value.Errors(NodeSchema, node)).toEqual([]);
    expect(listed).toMatchObject(
      ["node1", "node2"].map((id) => ({
        id,
        clusterID: api().store.clusterId,
        status: "ready",
        sandboxCount: 1,
        sandboxStartingCount: 0,
        createSuccesses: 1,
        createFails: 0,
        machineInfo: { cpuArchitecture: "x64" },
        metrics: { allocatedCPU: 2, allocatedMemoryBytes: 512 * 2 ** 20, cpuPercent: 12.5, memoryTotalBytes: 8 * 2 ** 30 },
      })),
    );
    const detail = await call("GET", "/nodes/node1");
    expect(Value.Errors(NodeDetailSchema, detail.body)).toEqual([]);
    expect(detail.body).not.toHaveProperty("sandboxStartingCount");
    api().node.create = Code.Internal;
    await api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect((await call("GET", "/nodes/node1")).body).toMatchObject({ createSuccesses: 1, createFails: 1 });
    api().node.isDeaf = true;
    expect((await call("GET", "/nodes/node1")).body).toMatchObject({ status: "unhealthy", version: "" });
    expect((await nodesOf()).map(({ status }) => status)).toEqual(["unhealthy", "ready"]);
  });

  it("finds only nodes that there are, of the cluster that there is", async () => {
    for (const path of ["/nodes/nope", `/nodes/node1?clusterID=${randomUUID()}`, "/nodes/%00"]) {
      expect(await call("GET", path)).toMatchObject({ status: 404, text: "" });
    }
    expect(await call("POST", "/nodes/nope", { status: "ready" })).toMatchObject({ status: 404, text: "" });
    expect((await call("POST", "/nodes/node1", { status: "draining", clusterID: randomUUID() })).status).toBe(404);
    expect((await call("GET", `/nodes?clusterID=${randomUUID()}`)).body).toEqual([]);
    expect((await call("GET", `/nodes?clusterID=${api().store.clusterId}`)).body).toHaveLength(2);
    for (const status of ["connecting", "unhealthy"]) expect(await set("node1", status)).toBe(409);
    for (const status of ["", "gone", null]) expect((await call("POST", "/nodes/node1", { status })).status).toBe(400);
    expect((await call("POST", "/nodes/node1")).status).toBe(400);
    expect((await nodesOf()).map(({ status }) => status)).toEqual(["ready", "ready"]);
  });

  it.each(["draining", "standby"])("closes a %s node to new sandboxes in every process, and opens it again", async (status) => {
    const id = await api().create();
    const on = api().nodes.find(({ held }) => held.has(id))?.nodeId ?? "";
    const other = on === "node1" ? "node2" : "node1";
    await using second = await api().createSecond();
    const { url } = await second.listen();
    expect(await set(on, status)).toBe(204);
    for (let i = 0; i < 3; i++) expect(await placed()).toBe(other);
    for (let i = 0; i < 3; i++) await api().create({}, { url });
    expect((await nodesOf()).find((node) => node.id === on)).toMatchObject({ status, sandboxCount: 1 });
    // What is there goes on; a fork would be new.
    const fork = await api().call("POST", `/sandboxes/${id}/fork`);
    expect(fork.body).toMatchObject({ code: 503, error_code: "sandbox_no_compatible_node" });
    expect((await api().call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    expect((await api().call("POST", `/sandboxes/${id}/connect`, { body: { timeout: 60 } })).status).toBe(201);
    const snapshot = await api().call("POST", `/sandboxes/${id}/snapshots`, { body: {} });
    expect(await placed({ templateID: snapshot.body.snapshotID })).toBe("503 sandbox_no_compatible_node");
    expect(await set(other, "draining")).toBe(204);
    expect(await placed()).toBe("503 sandbox_capacity_unavailable");
    expect(await set(on, "ready")).toBe(204);
    expect(await placed()).toBe(on);
    expect(await placed({ templateID: snapshot.body.snapshotID })).toBe(on);
  });

  it("keeps builds off a draining node", async () => {
    expect(await set("node1", "draining")).toBe(204);
    const { templateID, buildID } = await requestBuild(api(), "web");
    expect((await api().call("POST", `/v2/templates/${templateID}/builds/${buildID}`, { body: { fromImage: "debian" } })).status).toBe(202);
    const status = async () => (await api().call("GET", `/templates/${templateID}/builds/${buildID}/status`)).body.status;
    await waitUntil("the build is ready", async () => (await status()) === "ready");
    expect((await api().store.templates.findAnyBuild(buildID))?.layersNodeId).toBe("node2");
  });

  it("kills what a team runs, and nothing else", async () => {
    const running = [await api().create(), await api().create(), await api().create()];
    const paused = await api().create();
    const theirs = await api().create({}, { key: api().otherKey });
    expect((await api().call("POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
    expect(await call("GET", "/admin/sandboxes/running-counts")).toMatchObject({ status: 200 });
    const other = (await api().store.identity.findTeamBySlug("other"))?.id ?? "";
    expect((await call("GET", "/admin/sandboxes/running-counts")).body).toEqual({ [api().teamId]: 3, [other]: 1 });
    const killed = await call("POST", `/admin/teams/${api().teamId.toUpperCase()}/sandboxes/kill`);
    expect(killed).toMatchObject({ status: 200, body: { killedCount: 3, failedCount: 0 } });
    for (const id of running) expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(404);
    expect((await api().call("GET", `/sandboxes/${paused}`)).body.state).toBe("paused");
    expect((await api().call("GET", `/sandboxes/${theirs}`, { key: api().otherKey })).status).toBe(200);
    expect((await call("GET", "/admin/sandboxes/running-counts")).body).toEqual({ [other]: 1 });
    expect((await call("POST", `/admin/teams/${randomUUID()}/sandboxes/kill`)).body).toEqual({ killedCount: 0, failedCount: 0 });
    expect((await call("POST", "/admin/teams/x/sandboxes/kill")).status).toBe(400);
    expect((await api().store.sandboxes.listEvents(running[0] ?? "")).map(({ actor }) => actor)).toContain("admin");
  });

  it("is told how many kills failed, which the platform retries", async () => {
    const id = await api().create();
    for (const node of api().nodes) node.kill = Code.Internal;
    expect((await call("POST", `/admin/teams/${api().teamId}/sandboxes/kill`)).body).toEqual({ killedCount: 0, failedCount: 1 });
    for (const node of api().nodes) node.kill = "ok";
    await waitUntil("the kill is retried", () => api().nodes.every(({ held }) => !held.has(id)));
  });
});
