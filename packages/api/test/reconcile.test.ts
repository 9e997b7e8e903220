import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { NewSandbox } from "@skerry/store";
import { waitUntil } from "@skerry/testkit/wait-until";
import { SandboxSpecSchema } from "@skerry/wire/node";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

const BY = { actor: "key:test" } as const;

describeOnEachDatabase("reconciling", { inSample: "postgres" }, (api) => {
  const find = (id: string) => api().store.sandboxes.find(id);

  /** The entry that a process leaves when it is killed in the middle of an operation. */
  async function leave(id: string, fields: Partial<NewSandbox> = {}): Promise<void> {
    const entry: NewSandbox = {
      id,
      teamId: api().teamId,
      templateId: api().templateId,
      buildId: api().buildId,
      alias: null,
      nodeId: "node1",
      nodeUrl: api().node.url,
      owner: "api1",
      createdAt: Date.now() - 60_000,
      metadata: null,
      cpuCount: 1,
      memoryMb: 128,
      diskSizeMb: 0,
      options: {},
      autoPause: false,
      autoPauseMemory: true,
      autoResume: false,
      timeoutMs: 300_000,
      volumeMounts: [],
      ...fields,
    };
    await api().store.sandboxes.insert(entry, BY);
  }
  const hold = (id: string) => api().node.held.set(id, { spec: create(SandboxSpecSchema, { sandboxId: id }), state: "running" });

  it("finishes what was cut off: half-made ones and half-killed ones", async () => {
    await leave("ihalfmade");
    hold("ihalfmade");
    await leave("ineverbegun");
    const killed = await api().create();
    await api().store.sandboxes.transition(killed, {
      from: "running",
      to: "killing",
      event: "kill",
      now: Date.now(),
      reason: "request",
      ...BY,
    });
    const running = await api().create();
    await using restarted = await api().createApi();
    await restarted.listen();
    await waitUntil("all have ended", async () => {
      const rows = await Promise.all(["ihalfmade", "ineverbegun", killed].map(find));
      return rows.every((row) => row?.state === "ended");
    });
    expect(await find("ihalfmade")).toMatchObject({ endReason: "abandoned" });
    expect(await find(killed)).toMatchObject({ endReason: "request" });
    expect([...api().node.held.keys()]).toEqual([running]);
    expect((await api().call("GET", `/sandboxes/${running}`)).status).toBe(200);
  });

  it("leaves creates under way alone, its own and another process's", async () => {
    api().node.create = "hang";
    const creating = api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    await waitUntil("the node was asked", () => api().node.held.size === 1);
    // With a clock that is an hour behind or ahead, because clocks are never compared.
    await api().store.processes.beat("api2/run", 1);
    for (const [id, hours] of [
      ["iother", 0],
      ["ibehind", -1],
      ["iahead", 1],
    ] as const) {
      await leave(id, { owner: "api2/run", createdAt: Date.now() + hours * 3_600_000 });
      hold(id);
    }
    await using second = await api().createSecond({ ownerId: "api3" });
    await Promise.all([api().api.reconcile(), second.reconcile()]);
    api().node.release();
    expect((await creating).status).toBe(201);
    for (const id of ["iother", "ibehind", "iahead"]) expect(await find(id)).toMatchObject({ state: "starting" });
    expect(api().node.held.size).toBe(4);
  });

  it("takes up what a process left of which there is no trace any more", async () => {
    await leave("ileft", { owner: "gone", createdAt: Date.now() });
    await waitUntil("it has ended", async () => (await find("ileft"))?.state === "ended");
    expect(await find("ileft")).toMatchObject({ endReason: "abandoned" });
  });

  it("takes up what a process that lives has not finished in twice the time that it has", async () => {
    const timing = { createTimeoutMs: 100, beatMs: 20, listTimeoutMs: 500, killTimeoutMs: 1_000 };
    await using watcher = await api().createApi({ ownerId: "api8", timing });
    await api().store.processes.beat("api7/run", 1);
    await watcher.listen();
    await leave("ihangs", { owner: "api7/run", createdAt: Date.now() });
    await waitUntil("it has ended", async () => {
      await api().store.processes.beat("api7/run", 1);
      await watcher.reconcile();
      return (await find("ihangs"))?.state === "ended";
    });
  });

  it("ends what its node has lost, and kills what nobody knows", async () => {
    const [lost, kept] = [await api().create(), await api().create()];
    api().node.held.delete(lost);
    hold("iorphan");
    await api().api.reconcile();
    expect(await find(lost)).toMatchObject({ state: "ended", endReason: "node_lost" });
    expect((await api().call("GET", `/sandboxes/${lost}`)).status).toBe(404);
    expect([...api().node.held.keys()]).toEqual([kept]);
    // A sandbox on the node whose entry has ended is an orphan too.
    hold(lost);
    await api().api.reconcile();
    expect([...api().node.held.keys()]).toEqual([kept]);
  });

  it("says why a create had failed, also where its database had taken it and the answer was lost", async () => {
    const { sandboxes } = api().store;
    const [start, findEntry] = [sandboxes.start.bind(sandboxes), sandboxes.find.bind(sandboxes)];
    const lost = Object.assign(new Error("Connection terminated unexpectedly"));
    let made = "";
    sandboxes.start = async (id, ...about) => {
      made = id;
      await start(id, ...about);
      throw lost;
    };
    sandboxes.find = async () => {
      throw lost;
    };
    expect((await api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } })).status).toBe(500);
    Object.assign(sandboxes, { start, find: findEntry });
    await waitUntil("it is not on its node", () => api().node.held.size === 0);
    await waitUntil("it has ended", async () => {
      await api().api.reconcile();
      return (await find(made))?.state === "ended";
    });
    expect(await find(made)).toMatchObject({ endReason: "create_failed" });
  });

  it("gives up what ended by itself and could not be given back yet", async () => {
    const id = await api().create();
    const held = api().node.held.get(id);
    if (held) held.state = "killing";
    api().node.kill = Code.Internal;
    await api().api.reconcile();
    expect(await find(id)).toMatchObject({ state: "killing", endReason: "exited" });
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(404);
    api().node.kill = "ok";
    await waitUntil("it has ended", async () => (await find(id))?.state === "ended");
    expect(api().node.held.size).toBe(0);
  });

  it.each(["hang" as const, Code.Unavailable, Code.Internal])("believes nothing of a node that answers with %s", async (behaviour) => {
    const id = await api().create();
    api().node.list = behaviour;
    await api().api.reconcile();
    expect(await find(id)).toMatchObject({ state: "running" });
  });

  it("lets several processes expire and kill the same sandboxes", async () => {
    await using second = await api().createSecond();
    await second.listen();
    const ids = await Promise.all(Array.from({ length: 40 }, () => api().create({ timeout: 1 })));
    await waitUntil("all have ended", async () => {
      const rows = await Promise.all(ids.map(find));
      return rows.every((row) => row?.state === "ended");
    });
    for (const id of ids) expect(api().node.countCalls("kill", id)).toBe(1);
  });

  it("takes up what a process left that does not live any more, and not what one is at work on", async () => {
    const { processes, sandboxes } = api().store;
    const id = await api().create();
    await processes.beat("api7/run", 1);
    const pausing = { from: "running", to: "pausing", event: "pause", now: Date.now(), ...BY, set: { owner: "api7/run" } } as const;
    await sandboxes.transition(id, pausing);
    const timing = { beatMs: 20, deadAfterMs: 500, listTimeoutMs: 500 };
    await using watcher = await api().createApi({ ownerId: "api8", timing });
    await watcher.listen();
    for (let beats = 0; beats < 40; beats += 1) {
      await processes.beat("api7/run", 1);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await watcher.reconcile();
    expect(await find(id)).toMatchObject({ state: "pausing" });
    await new Promise((resolve) => setTimeout(resolve, 600));
    await watcher.reconcile();
    expect(await find(id)).toMatchObject({ state: "running" });
  });

  it("finishes what was begun before the clock was set back", async () => {
    const [killed, made] = [await api().create(), await api().create()];
    const ahead = Date.now();
    const owner = { owner: "api1/gone" };
    await api().store.sandboxes.transition(killed, {
      from: "running",
      to: "killing",
      event: "kill",
      now: ahead,
      reason: "request",
      ...BY,
      set: owner,
    });
    await leave("ihalfmade", { createdAt: ahead, owner: "somewhere/else" });
    const back = { now: () => Date.now() - 3_600_000 };
    await using restarted = await api().createApi({ ownerId: "api1" }, back);
    await restarted.listen();
    await waitUntil("both have ended", async () => {
      await restarted.reconcile();
      return (await find(killed))?.state === "ended" && (await find("ihalfmade"))?.state === "ended";
    });
    expect(await find("ihalfmade")).toMatchObject({ endReason: "abandoned" });
    expect(await find(made)).toMatchObject({ state: "running" });
  });

  it("deletes images that no entry knows, after a while, and settles those that one does", async () => {
    const image = { sandboxId: "i1", hasMemory: true, agentUnresponsive: false };
    api().node.images.set("stray000000000000000", image);
    const timing = { strayImageMs: 300, listTimeoutMs: 500, killTimeoutMs: 1_000 };
    await using watcher = await api().createApi({ ownerId: "api8", timing });
    await watcher.reconcile();
    expect(api().node.images.size).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 350));
    await watcher.reconcile();
    expect(api().node.images.size).toBe(0);
    // A paused sandbox is lost when its node has lost the image.
    const id = await api().create();
    expect((await api().call("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
    api().node.images.clear();
    await watcher.reconcile();
    expect(await find(id)).toMatchObject({ state: "ended", endReason: "node_lost", endActor: "platform" });
    expect(await api().store.images.listOfPauses(id)).toEqual([]);
  });

  it("has nodes remove layers that no build needs, after a while without interruption", async () => {
    const { node, store, templateId } = api();
    const [needed, stray] = [`sha256:${"a".repeat(64)}`, `sha256:${"5".repeat(64)}`];
    for (const digest of [needed, stray]) node.unusedLayers.add(digest);
    const timing = { layerLookMs: 0, unusedLayerMs: 300, listTimeoutMs: 500, killTimeoutMs: 1_000 };
    await using watcher = await api().createApi({ ownerId: "api9", timing });
    const passed = () => new Promise((resolve) => setTimeout(resolve, 350));
    await watcher.reconcile();
    // Time in which the node did not answer does not count.
    await passed();
    node.list = Code.Unavailable;
    await watcher.reconcile();
    node.list = "ok";
    await watcher.reconcile();
    expect(node.unusedLayers).toEqual(new Set([needed, stray]));
    // Nor does time before something used it for a moment.
    await passed();
    node.unusedLayers.delete(stray);
    await watcher.reconcile();
    node.unusedLayers.add(stray);
    await watcher.reconcile();
    expect(node.countCalls("deleteLayer")).toBe(0);
    await passed();
    await watcher.reconcile();
    expect(node.unusedLayers).toEqual(new Set([needed]));
    // A deleted template needs nothing, and neither does a sandbox of it that has ended.
    await store.templates.delete(templateId, Date.now());
    await watcher.reconcile();
    await passed();
    await watcher.reconcile();
    expect(node.unusedLayers).toEqual(new Set());
    await store.templates.putTemplate({ id: templateId, teamId: api().teamId, isPublic: true, now: Date.now() });
    await store.templates.putAlias({ namespace: "", alias: "base", templateId, now: Date.now() });
  });

  it("tells memory from other ends that nobody asked for", async () => {
    const [going, gone, lost] = [await api().create(), await api().create(), await api().create()];
    const held = api().node.held.get(going);
    if (held) held.state = "killing";
    for (const id of [gone, lost]) api().node.held.delete(id);
    for (const id of [going, gone]) api().node.unaskedEnds.set(id, "memory");
    await api().api.reconcile();
    expect(await find(going)).toMatchObject({ state: "ended", endReason: "memory" });
    expect(await find(gone)).toMatchObject({ state: "ended", endReason: "memory" });
    expect(await find(lost)).toMatchObject({ state: "ended", endReason: "node_lost" });
  });

  it("forgets what ended long ago", async () => {
    const id = await api().create();
    await api().store.sandboxes.transition(id, { from: "running", to: "ended", event: "gone", now: Date.now() - 25 * 3_600_000, ...BY });
    await api().api.reconcile();
    expect(await find(id)).toBeUndefined();
  });
});
