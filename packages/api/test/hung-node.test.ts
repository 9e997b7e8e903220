// One node accepts connections and does not answer. It must not affect the work on the other nodes.

import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterEach, expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

const NEVER_MS = 600_000;
const timing = {
  killTimeoutMs: NEVER_MS,
  pauseTimeoutMs: NEVER_MS,
  listTimeoutMs: NEVER_MS,
  expiryScanMs: 50,
  reconcileMs: 50,
};

describeOnEachDatabase("beside a node that hangs", { inSample: "sqlite", nodes: 2, timing }, (api) => {
  afterEach(() => {
    Object.assign(nodes().hung, { create: "ok", kill: "ok", pause: "ok", list: "ok", deleteImage: "ok" });
    nodes().hung.release();
  });
  const nodes = () => {
    const [hung, other] = api().nodes;
    if (!hung || !other) throw new Error("there are two nodes");
    return { hung, other };
  };
  /** Creates at least `count` sandboxes on each node. */
  const fill = async (count: number, body: object = {}) => {
    const { hung, other } = nodes();
    while (hung.held.size < count || other.held.size < count) await api().create({ timeout: 3600, ...body });
  };
  const expireAll = async () => {
    const ids = nodes().hung.held.keys().toArray().concat(nodes().other.held.keys().toArray());
    await Promise.all(ids.map((id) => api().call("POST", `/sandboxes/${id}/timeout`, { body: { timeout: 0 } })));
  };

  it("sandboxes of the others are killed when their time is over", async () => {
    await fill(40);
    nodes().hung.kill = "hang";
    await expireAll();
    await waitUntil("all of the other node are gone", () => nodes().other.held.size === 0);
    expect(nodes().hung.held.size).toBe(40);
  });

  it("sandboxes of the others are paused when their time is over", async () => {
    await fill(8, { autoPause: true });
    nodes().hung.pause = "hang";
    await expireAll();
    await waitUntil("all of the other node are paused", () => nodes().other.images.size === 8);
    expect(nodes().hung.held.size).toBe(8);
  });

  it("images of the others are deleted", async () => {
    await fill(12);
    const { hung, other } = nodes();
    const ids = [...hung.held.keys(), ...other.held.keys()];
    const snapshots = await Promise.all(ids.map((id) => api().call("POST", `/sandboxes/${id}/snapshots`, { body: {} })));
    for (const node of [hung, other]) node.deleteImage = Code.Unavailable;
    await Promise.all(snapshots.map(({ body }) => api().call("DELETE", `/templates/${body.snapshotID}`)));
    expect([hung.images.size, other.images.size]).toEqual([12, 12]);
    hung.deleteImage = "hang";
    await waitUntil("it hangs", () => hung.hanging > 0);
    other.deleteImage = "ok";
    await waitUntil("all of the other node are deleted", () => other.images.size === 0);
    expect(hung.images.size).toBe(12);
  });

  it("new sandboxes are placed on the others, although it has fewer", async () => {
    await fill(1);
    const { hung, other } = nodes();
    Object.assign(hung, { create: Code.Unavailable, list: Code.Unavailable });
    await api().api.reconcile();
    for (let count = 0; count < 3; count++) await api().create();
    expect([hung.held.size, other.held.size]).toEqual([1, 4]);
  });

  it("what became of the others' sandboxes is found out", async () => {
    await fill(1);
    const { hung, other } = nodes();
    hung.list = "hang";
    await waitUntil("it hangs", () => hung.hanging > 0);
    const [id = ""] = other.held.keys();
    other.end(id);
    await waitUntil("it is known to have ended", async () => (await api().store.sandboxes.find(id))?.state === "paused");
  });
});
