// Volumes in the control plane: their life, their mounts, and who may use them.

import { randomUUID } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import type { CallOptions } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const MIB = 1024n * 1024n;

describeOnEachDatabase("volumes", { inSample: "postgres", limits: { volumes: 4, volumeMb: 40_000 } }, (api) => {
  const call = (method: string, path: string, options: CallOptions = {}) => api().call(method, path, options);
  const create = async (name: string, options: CallOptions = {}) => {
    const answer = await call("POST", "/volumes", { body: { name }, ...options });
    expect(answer.status, answer.text).toBe(201);
    return answer.body as { volumeID: string; name: string; token: string };
  };
  const volumes = () => api().node.volumes;
  const isGone = (id: string) => waitUntil("its node has deleted the volume", () => !volumes().held.has(id));
  const mount = (name: string, path = "/mnt/v") => ({ volumeMounts: [{ name, path }] });
  const detailsOf = async (id: string) => (await call("GET", `/sandboxes/${id}`)).body;
  /** What the node was told to mount in a running sandbox. */
  const mounted = (id: string) =>
    api()
      .node.held.get(id)
      ?.spec.volumeMounts.map(({ volumeId, path }) => ({ volumeId, path }));

  it("are created, listed, read and deleted by their team", async () => {
    const { volumeID, token } = await create("data");
    expect(token).toMatch(/^skv_w_/);
    expect(volumes().held.get(volumeID)?.sizeBytes).toBe(Number(10_240n * MIB));
    const second = await call("POST", "/volumes", { body: { name: "Data-2_x", sizeMB: 64 } });
    expect(second).toMatchObject({ status: 201, body: { name: "Data-2_x", sizeMB: 64 } });
    const listed = await call("GET", "/volumes");
    expect(listed.body).toEqual([
      { volumeID, name: "data", sizeMB: 10_240 },
      { volumeID: second.body.volumeID, name: "Data-2_x", sizeMB: 64 },
    ]);
    expect((await call("GET", `/volumes/${volumeID.toUpperCase()}`)).body).toMatchObject({
      volumeID,
      name: "data",
      token: expect.any(String),
    });
    const other = { key: api().otherKey };
    expect((await call("GET", "/volumes", other)).body).toEqual([]);
    expect((await call("GET", `/volumes/${volumeID}`, other)).body).toEqual({ code: 404, message: "Volume not found" });
    expect((await call("DELETE", `/volumes/${volumeID}`, other)).status).toBe(404);
    expect((await call("GET", "/volumes/nope")).body).toEqual({ code: 400, message: "Invalid volume ID" });
    expect((await call("GET", `/volumes/${randomUUID()}`)).status).toBe(404);
    expect((await call("POST", "/volumes", { body: { name: "data" } })).body).toEqual({
      code: 400,
      message: "Volume with name 'data' already exists",
    });
    await create("data", other);
    for (const name of ["", "a b", "a/b", "é", "x".repeat(129)])
      expect((await call("POST", "/volumes", { body: { name } })).status).toBe(400);
    expect((await call("DELETE", `/volumes/${volumeID}`)).status).toBe(204);
    expect((await call("DELETE", `/volumes/${volumeID}`)).status).toBe(404);
    await isGone(volumeID);
    // Its name is free at once.
    await create("data");
  });

  it("are limited in number and in size", async () => {
    for (let number = 0; number < 3; number += 1) await create(`v${number}`);
    const large = await call("POST", "/volumes", { body: { name: "large", sizeMB: 10_000 } });
    expect(large).toMatchObject({
      status: 429,
      body: { message: expect.stringContaining("maximum size of all your volumes in MiB (40000)") },
    });
    expect((await call("POST", "/volumes", { body: { name: "small", sizeMB: 9_000 } })).status).toBe(201);
    const many = await call("POST", "/volumes", { body: { name: "many", sizeMB: 8 } });
    expect(many).toMatchObject({ status: 429, body: { message: expect.stringContaining("maximum number of volumes (4)") } });
    const use = await call("GET", `/admin/teams/${api().teamId}/limits`, { key: null, headers: { "X-Admin-Token": api().adminToken } });
    expect(use.body).toMatchObject({ use: { volumes: 4, volumeMB: 39_720 } });
  });

  it("that a node cannot create leave nothing", async () => {
    volumes().refusals.set("createVolume", new ConnectError("/secret/path", Code.Internal));
    expect((await call("POST", "/volumes", { body: { name: "x" } })).body).toEqual({ code: 500, message: "An internal error occurred" });
    volumes().refusals.set("createVolume", new ConnectError("", Code.Unavailable));
    expect((await call("POST", "/volumes", { body: { name: "x" } })).status).toBe(503);
    expect((await call("GET", "/volumes")).body).toEqual([]);
    volumes().refusals.clear();
    await create("x");
    await api().api.reconcile();
    await waitUntil("the failed ones are forgotten", async () => (await api().store.volumes.listUnsettled("deleting", 9)).length === 0);
    expect(volumes().held.size).toBe(1);
  });

  it("whose create or delete was cut off are finished by the reconciliation", async () => {
    const left = {
      id: randomUUID(),
      teamId: api().teamId,
      name: "left",
      nodeId: "node1",
      sizeMb: 8,
      owner: "api1/gone",
      createdAt: Date.now(),
    };
    await api().store.volumes.add(left, { max: 9, maxMb: null });
    await api().node.client.createVolume({ volumeId: left.id, sizeBytes: 8n * MIB });
    volumes().refusals.set("deleteVolume", new ConnectError("", Code.Unavailable));
    const { volumeID } = await create("other");
    expect((await call("DELETE", `/volumes/${volumeID}`)).status).toBe(204);
    await api().api.reconcile();
    expect(volumes().held.size).toBe(2);
    volumes().refusals.clear();
    await waitUntil("both are gone", async () => {
      await api().api.reconcile();
      return volumes().held.size === 0 && (await api().store.volumes.listUnsettled("deleting", 9)).length === 0;
    });
    expect(await api().store.volumes.listUnsettled("creating", 9)).toEqual([]);
  });

  it("are mounted by name, and stay through pause, resume, fork, and snapshots", async () => {
    const { volumeID } = await create("data");
    const id = await api().create(mount("data", "/mnt/v/"));
    const expected = [{ volumeId: volumeID, path: "/mnt/v" }];
    const shown = [{ name: "data", path: "/mnt/v" }];
    expect(mounted(id)).toEqual(expected);
    expect((await detailsOf(id)).volumeMounts).toEqual(shown);
    expect((await call("GET", "/v2/sandboxes")).body[0].volumeMounts).toEqual(shown);
    expect((await call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    expect((await detailsOf(id)).volumeMounts).toEqual(shown);
    const resumed = await call("POST", `/sandboxes/${id}/resume`, { body: {} });
    expect(resumed).toMatchObject({ status: 201 });
    expect(resumed.headers["skerry-memory-lost"]).toBeUndefined();
    expect(mounted(id)).toEqual(expected);
    const [fork] = (await call("POST", `/sandboxes/${id}/fork`, { body: {} })).body;
    expect(mounted(fork.sandbox.sandboxID)).toEqual(expected);
    const { snapshotID } = (await call("POST", `/sandboxes/${id}/snapshots`, { body: { name: "snap" } })).body;
    const from = await api().create({ templateID: snapshotID });
    expect(mounted(from)).toEqual(expected);
    expect((await detailsOf(from)).volumeMounts).toEqual(shown);
    expect(mounted(await api().create({ templateID: snapshotID, volumeMounts: [] }))).toEqual([]);
    await create("second");
    const others = await api().create({ templateID: snapshotID, ...mount("second", "/other") });
    expect(mounted(others)).toMatchObject([{ path: "/other" }]);
  });

  it("of a public snapshot are not mounted for other teams", async () => {
    await create("data");
    const id = await api().create(mount("data"));
    const { snapshotID } = (await call("POST", `/sandboxes/${id}/snapshots`, { body: { name: "snap" } })).body;
    const template = (await call("GET", `/sandboxes/${await api().create({ templateID: snapshotID })}`)).body.templateID;
    expect((await call("PATCH", `/templates/${template}`, { body: { public: true } })).status).toBe(200);
    const foreign = await api().create({ templateID: template }, { key: api().otherKey });
    expect(mounted(foreign)).toEqual([]);
  });

  it("with wrong mounts are refused, with every problem", async () => {
    await create("data");
    await create("foreign", { key: api().otherKey });
    const volumeMounts = [
      { name: "data", path: "/ok" },
      { name: "gone", path: "" },
      { name: "foreign", path: "relative" },
      { name: "data", path: "/a/../b" },
      { name: "data", path: "/ok/" },
      { name: "data", path: "/ok/inner" },
      { name: "data", path: "/proc/self" },
    ];
    const answer = await call("POST", "/v2/sandboxes", { body: { templateID: "base", volumeMounts } });
    expect(answer.body).toEqual({
      code: 400,
      message: [
        "invalid mounts:",
        "volume 'gone' not found",
        "path cannot be empty",
        "volume 'foreign' not found",
        "path must be absolute",
        "path must not contain any '.' or '..' components",
        "path '/ok' is already used",
        "path '/ok/inner' is inside or around of another mount, '/ok'",
        "path '/proc/self' cannot be a mount",
      ].join("\n\t- "),
    });
    for (const path of ["/", "//", "/a//b", "/a\0b", "/dev/x", "/sys", "/.skerry/x", `/${"x".repeat(1024)}`]) {
      expect((await call("POST", "/v2/sandboxes", { body: { templateID: "base", ...mount("data", path) } })).status, path).toBe(400);
    }
    expect(api().node.held.size).toBe(0);
  });

  it("are not deleted while sandboxes mount them, unless forced", async () => {
    const { volumeID } = await create("data");
    const id = await api().create({ ...mount("data"), autoPause: true });
    const { snapshotID } = (await call("POST", `/sandboxes/${id}/snapshots`, { body: { name: "snap" } })).body;
    const remove = (query = "") => call("DELETE", `/volumes/${volumeID}${query}`);
    expect(await remove()).toMatchObject({
      status: 409,
      body: { error_code: "volume_mounted", message: expect.stringContaining("a sandbox mounts") },
    });
    expect((await call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    expect((await remove("?force=false")).status).toBe(409);
    expect((await remove("?force=1")).status).toBe(400);
    expect((await remove("?force=true")).status).toBe(204);
    await isGone(volumeID);
    // It goes on without the volume, and says what it lost.
    const resumed = await call("POST", `/sandboxes/${id}/resume`, { body: {} });
    expect(resumed.status).toBe(201);
    expect(resumed.headers["skerry-memory-lost"]).toEqual(expect.any(String));
    expect(mounted(id)).toEqual([]);
    const [fork] = (await call("POST", `/sandboxes/${id}/fork`, { body: {} })).body;
    expect(mounted(fork.sandbox.sandboxID)).toEqual([]);
    const again = await call("POST", "/v2/sandboxes", { body: { templateID: snapshotID } });
    expect(again).toMatchObject({ status: 400, body: { message: expect.stringContaining("volume 'data' not found") } });
    expect((await call("POST", "/v2/sandboxes", { body: { templateID: snapshotID, volumeMounts: [] } })).status).toBe(201);
  });

  it("can be deleted when their sandboxes have ended", async () => {
    const { volumeID } = await create("data");
    const id = await api().create(mount("data"));
    expect((await call("DELETE", `/volumes/${volumeID}`)).status).toBe(409);
    expect((await call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    expect((await call("DELETE", `/volumes/${volumeID}`)).status).toBe(204);
    await isGone(volumeID);
  });

  it("are in the events of their team", async () => {
    const { volumeID } = await create("data");
    await call("DELETE", `/volumes/${volumeID}`);
    const told = async () => (await call("GET", "/events?order=asc")).body;
    await waitUntil("both events are there", async () => (await told()).length === 2);
    expect(await told()).toMatchObject([
      { type: "volume.lifecycle.created", subject_id: volumeID, event_data: { name: "data", size_mb: 10_240 } },
      { type: "volume.lifecycle.deleted" },
    ]);
  });

  it("keep their team from being deleted", async () => {
    const operator = { key: null, headers: { "X-Admin-Token": api().adminToken } };
    const team = await call("POST", "/admin/teams", { ...operator, body: { name: "T", slug: "t-1" } });
    const acting = { key: null, headers: { ...operator.headers, "X-Team-ID": team.body.teamID } };
    const { volumeID } = await create("data", acting);
    expect(await call("DELETE", `/admin/teams/${team.body.teamID}`, operator)).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining("1 volumes") },
    });
    expect((await call("DELETE", `/volumes/${volumeID}`, acting)).status).toBe(204);
    expect((await call("DELETE", `/admin/teams/${team.body.teamID}`, operator)).status).toBe(204);
  });
});

describeOnEachDatabase("volumes on several machines", { inSample: "sqlite", nodes: 2 }, (api) => {
  it("bring their sandboxes to them", async () => {
    const busy = await api().create();
    const [crowded, free] = api().nodes[0]?.held.has(busy) ? api().nodes : [...api().nodes].reverse();
    const { volumeID } = (await api().call("POST", "/volumes", { body: { name: "one" } })).body;
    expect(free?.volumes.held.has(volumeID)).toBe(true);
    for (let number = 0; number < 3; number += 1) {
      const id = await api().create({ volumeMounts: [{ name: "one", path: "/v" }] });
      expect(free?.held.has(id)).toBe(true);
    }
    const other = (await api().call("POST", "/volumes", { body: { name: "two" } })).body;
    expect(crowded?.volumes.held.has(other.volumeID)).toBe(true);
    const both = ["one", "two"].map((name) => ({ name, path: `/${name}` }));
    const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base", volumeMounts: both } });
    expect(answer.body).toEqual({ code: 400, message: "invalid mounts:\n\t- the volumes are on different machines" });
  });
});
