// A shutdown of the host: every sandbox is paused, and the next start of the platform resumes them.

import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("a suspend", { inSample: "postgres" }, (api) => {
  const find = (id: string) => api().store.sandboxes.find(id);
  const stateOf = async (id: string) => (await find(id))?.state;
  const suspend = async (body?: object) => {
    const headers = { "X-Admin-Token": api().adminToken };
    return await api().call("POST", "/admin/suspend", { key: null, headers, ...(body ? { body } : {}) });
  };
  const startAgain = async () => {
    await api().api.close();
    api().api = await api().createApi({ timing: { reconcileMs: 50 } });
    ({ url: api().url } = await api().api.listen());
  };
  const runs = async (id: string) => await waitUntil("it runs", async () => (await stateOf(id)) === "running");

  it("pauses every sandbox with its memory, and the next start resumes them with the time that they had left", async () => {
    const ids = [await api().create({ timeout: 500 }), await api().create({ timeout: 3_000, autoPause: true })];
    const before = await Promise.all(ids.map(find));
    const answer = await suspend();
    expect(answer).toMatchObject({ status: 200, body: { pausedCount: 2, withoutMemory: [], stillRunning: [] } });
    for (const id of ids) expect(await find(id)).toMatchObject({ state: "paused", imageHasMemory: true });
    // The process that suspended them does not resume them itself.
    await api().api.reconcile();
    expect(await Promise.all(ids.map(stateOf))).toEqual(["paused", "paused"]);
    await startAgain();
    for (const [index, id] of ids.entries()) {
      await runs(id);
      const sandbox = await find(id);
      const rest = (before[index]?.timeoutMs ?? 0) - ((sandbox?.endAt ?? 0) - (sandbox?.startedAt ?? 0));
      expect(rest).toBeGreaterThanOrEqual(0);
      expect(rest).toBeLessThan(120_000);
      expect(sandbox).toMatchObject({ resumeMs: null, autoPause: before[index]?.autoPause });
      const events = (await api().store.sandboxes.listEvents(id)).map(({ event, reason, actor }) => `${event} ${reason} ${actor}`);
      expect(events.slice(2)).toEqual([
        "pause shutdown platform",
        "paused shutdown platform",
        "resume null platform",
        "resumed null platform",
      ]);
    }
  });

  it("lets no other sandbox start until then", async () => {
    const paused = await api().create();
    await api().call("POST", `/sandboxes/${paused}/pause`);
    await suspend();
    const refused = { code: 503, message: "The platform is shutting down with its host; try again when it is back" };
    const create = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect([create.status, create.body]).toEqual([503, expect.objectContaining(refused)]);
    const connect = await api().call("POST", `/v2/sandboxes/${paused}/connect`, { body: {} });
    expect([connect.status, connect.body]).toEqual([503, expect.objectContaining(refused)]);
    await startAgain();
    const other = await api().create();
    await runs(other);
    expect(await stateOf(paused)).toBe("paused");
  });

  it("pauses without memory what cannot be saved, which then stays paused", async () => {
    const [unsavable, silent, late] = [await api().create(), await api().create(), await api().create()];
    const held = (id: string) => api().node.held.get(id) ?? expect.fail("the node has no such sandbox");
    held(unsavable).unsavable = "an open file was deleted";
    held(silent).isSilent = true;
    const answer = await suspend();
    expect(answer.body.pausedCount).toBe(3);
    expect(answer.body.withoutMemory.toSorted()).toEqual([unsavable, silent].toSorted());
    await startAgain();
    await runs(late);
    expect([await find(unsavable), await find(silent)]).toMatchObject([
      { state: "paused", imageHasMemory: false, resumeMs: null, suspendedBy: null },
      { state: "paused", resumeMs: null },
    ]);
  });

  it("pauses without memory when there is no time for it", async () => {
    const id = await api().create();
    expect((await suspend({ withinSeconds: 0 })).body).toEqual({ pausedCount: 1, withoutMemory: [id], stillRunning: [] });
  });

  it("leaves what a caller paused, resumed or killed since", async () => {
    const [killed, resumed, paused] = [await api().create(), await api().create(), await api().create()];
    await suspend();
    expect((await api().call("DELETE", `/sandboxes/${killed}`)).status).toBe(204);
    await using other = await api().createSecond();
    const { url } = await other.listen();
    // Another process does not resume what a living one has suspended, but serves its callers.
    expect((await api().call("POST", `/v2/sandboxes/${resumed}/connect`, { url, body: { timeout: 77 } })).status).toBe(201);
    const end = (await find(resumed))?.endAt;
    api().node.resume = Code.Unavailable;
    await startAgain();
    await waitUntil("a resume was tried", () => api().node.calls.filter(({ method }) => method === "resume").length > 1);
    expect(await stateOf(paused)).not.toBe("running");
    api().node.resume = "ok";
    await runs(paused);
    expect((await api().call("POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
    await startAgain();
    await api().api.reconcile();
    expect(await find(paused)).toMatchObject({ state: "paused", resumeMs: null });
    expect(await find(resumed)).toMatchObject({ state: "running", endAt: end });
    expect(await stateOf(killed)).toBe("ended");
  });

  it("is the operator's alone", async () => {
    expect((await api().call("POST", "/admin/suspend")).status).toBe(401);
    expect((await suspend({ withinSeconds: -1 })).status).toBe(400);
  });
});
