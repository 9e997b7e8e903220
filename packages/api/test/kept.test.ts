// What nodes report about sandboxes that ended by themselves, and about memory that was lost in a snapshot.

import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describeOnEachDatabase("a sandbox that ended by itself", { inSample: "sqlite" }, (api) => {
  const find = (id: string) => api().store.sandboxes.find(id);
  const detail = async (id: string) => (await api().call("GET", `/sandboxes/${id}`)).body;
  const lastEvent = async (id: string) => {
    const { event, from, to, reason } = (await api().store.sandboxes.listEvents(id)).at(-1) ?? {};
    return `${event}: ${from}>${to} ${reason}`;
  };
  const images = () => [...api().node.images.keys()];

  it("is paused with its disk, says why, and goes on from it", async () => {
    const id = await api().create();
    const imageId = api().node.end(id, "memory");
    await api().api.reconcile();
    const { keptUntil, ...shown } = await detail(id);
    expect(shown).toMatchObject({ state: "paused", pauseMode: "filesystem", pauseReason: "memory" });
    expect(Date.parse(keptUntil) - Date.now()).toBeGreaterThan(6.9 * DAY_MS);
    expect(await find(id)).toMatchObject({ imageId, imageHasMemory: false });
    expect(await lastEvent(id)).toBe("kept: running>paused memory_lost: it ran out of memory");
    // A second round of reconciliation changes nothing.
    await api().api.reconcile();
    expect((await find(id))?.version).toBe((await api().store.sandboxes.listEvents(id)).length);
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(201);
    expect(api().node.held.get(id)?.spec.imageId).toBe(imageId);
    for (const field of ["pauseReason", "keptUntil"]) expect(await detail(id)).not.toHaveProperty(field);
    expect(await find(id)).toMatchObject({ state: "running", keepUntil: null, pauseReason: null });
    await waitUntil("its image is gone", async () => (await api().store.images.find(imageId)) === undefined);
  });

  it("is kept for the time that it had left where that is longer, and for ever where its time ends with a pause", async () => {
    const long = await api().create({ timeout: 24 * 3_600 });
    await api().store.sandboxes.setEnd(long, { endAt: Date.now() + 30 * DAY_MS, now: Date.now(), onlyLater: true });
    const pausing = await api().create({ autoPause: true });
    for (const id of [long, pausing]) api().node.end(id);
    await api().api.reconcile();
    expect(((await find(long))?.keepUntil ?? 0) - Date.now()).toBeGreaterThan(29 * DAY_MS);
    expect(await find(pausing)).toMatchObject({ state: "paused", keepUntil: null, pauseReason: "exited" });
  });

  it("ends when it was kept for long enough", async () => {
    await using other = await api().createApi({ timing: { keepUnaskedMs: 0, killTimeoutMs: 1_000 } });
    await other.listen();
    const id = await api().create();
    await api().store.sandboxes.setEnd(id, { endAt: Date.now() + 50, now: Date.now(), onlyLater: false });
    const imageId = api().node.end(id);
    await waitUntil("it has ended", async () => {
      await other.reconcile();
      return (await find(id))?.state === "ended";
    });
    expect((await find(id))?.endReason).toBe("timeout");
    await waitUntil("its image is gone", () => !images().includes(imageId));
  });

  it("in the middle of a pause is paused all the same, and the answer says what was lost", async () => {
    const id = await api().create();
    const pausing = api().call("POST", `/sandboxes/${id}/pause`);
    api().node.end(id);
    const paused = await pausing;
    expect(paused).toMatchObject({ status: 204, headers: { "skerry-memory-lost": expect.stringMatching(/ended/) } });
    expect(await detail(id)).toMatchObject({ state: "paused", pauseReason: "exited" });
  });

  it("in the middle of a snapshot leaves none, and the answer says that it is paused", async () => {
    const id = await api().create();
    const taking = api().call("POST", `/sandboxes/${id}/snapshots`, { body: {} });
    api().node.end(id);
    expect(await taking).toMatchObject({
      status: 500,
      body: { message: expect.stringMatching(/its processes ended meanwhile, and it is paused now$/) },
    });
    expect(await detail(id)).toMatchObject({ state: "paused", pauseReason: "exited" });
  });

  it("while nobody knows whether it was resumed is kept in what it had last", async () => {
    const id = await api().create();
    await api().call("POST", `/sandboxes/${id}/pause`);
    const before = (await find(id))?.imageId ?? "";
    api().node.lost.set("resume", Code.Unavailable);
    api().node.list = Code.Unavailable;
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(503);
    api().node.lost.clear();
    api().node.list = "ok";
    const imageId = api().node.end(id);
    await api().api.reconcile();
    expect(await find(id)).toMatchObject({ state: "paused", imageId });
    expect(imageId).not.toBe(before);
  });

  it("and was killed meanwhile stays ended, and its image goes", async () => {
    const id = await api().create();
    const imageId = api().node.end(id);
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    await api().api.reconcile();
    expect((await find(id))?.state).toBe("ended");
    await using other = await api().createApi({ timing: { strayImageMs: 0, killTimeoutMs: 1_000 } });
    await other.reconcile();
    expect(images()).not.toContain(imageId);
  });
});

describeOnEachDatabase("a snapshot that cost its sandbox the memory", { inSample: "sqlite" }, (api) => {
  const lastEvent = async (id: string) => (await api().store.sandboxes.listEvents(id)).at(-1);

  it.each([
    ["snapshots", { name: "lost" }],
    ["fork", {}],
  ])("says so, for %s, in the answer and the journal", async (what, body) => {
    const id = await api().create();
    api().node.memoryLostReason = "the processor is another one";
    const taken = await api().call("POST", `/sandboxes/${id}/${what}`, { body });
    expect(taken).toMatchObject({ status: 201, headers: { "skerry-memory-lost": "the processor is another one" } });
    expect(await lastEvent(id)).toMatchObject({ event: "snapshot_over", reason: "memory_lost: the processor is another one" });
  });

  it("is like a resume whose process was gone before it could say so", async () => {
    const id = await api().create();
    await api().call("POST", `/sandboxes/${id}/pause`);
    api().node.memoryLostReason = "the processor is another one";
    api().node.lost.set("resume", Code.Unavailable);
    api().node.list = Code.Unavailable;
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(503);
    api().node.lost.clear();
    api().node.list = "ok";
    const held = api().node.held.get(id);
    if (held) held.memoryLostReason = "the processor is another one";
    await waitUntil("it runs", async () => {
      await api().api.reconcile();
      return (await api().store.sandboxes.find(id))?.state === "running";
    });
    expect(await lastEvent(id)).toMatchObject({ event: "resumed", reason: "memory_lost: the processor is another one" });
  });

  it("says so in the journal when its process was gone before", async () => {
    const id = await api().create();
    await api().store.sandboxes.transition(id, { from: "running", to: "snapshotting", event: "snapshot", actor: "x", now: Date.now() });
    await api().store.sandboxes.disown((await api().store.sandboxes.find(id)) ?? { id, version: 0 });
    const held = api().node.held.get(id);
    if (held) held.state = "snapshotting";
    await api().api.reconcile();
    expect((await api().store.sandboxes.find(id))?.state).toBe("snapshotting");
    if (held) Object.assign(held, { state: "running", memoryLostReason: "it could not be brought back" });
    await api().api.reconcile();
    expect((await api().store.sandboxes.find(id))?.state).toBe("running");
    expect(await lastEvent(id)).toMatchObject({ event: "snapshot_over", reason: "memory_lost: it could not be brought back" });
  });
});
