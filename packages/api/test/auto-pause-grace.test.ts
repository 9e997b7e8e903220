// Guests that keep their sandbox from being paused at its timeout.

import { Code } from "@connectrpc/connect";
import { sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { describeOnEachDatabase } from "./each-database.ts";

const WHY = 'processes hold the deleted file "/tmp/f" (10737418240 bytes) open';

describeOnEachDatabase("a pause that fails by the guest's doing", { inSample: "sqlite", timing: { autoPauseGraceMs: 300 } }, (api) => {
  const expire = async (id: string) => {
    const now = Date.now();
    await api().store.sandboxes.setEnd(id, { endAt: now, now, onlyLater: false });
  };
  const find = (id: string) => api().store.sandboxes.find(id);
  const isIn = async (id: string, state: string) => (await find(id))?.state === state;
  const change = (id: string, to: { isSilent?: boolean; unsavable?: string }) => Object.assign(api().node.held.get(id) ?? {}, to);
  const events = async (id: string) => (await api().store.sandboxes.listEvents(id)).map(({ event, reason }) => `${event}:${reason}`);
  const create = async (options: object, guest: { isSilent?: boolean; unsavable?: string }) => {
    const id = await api().create({ autoPause: true, ...options });
    change(id, guest);
    await expire(id);
    return id;
  };

  it("costs it its memory after a grace, and the journal and the answer of a connect say why", async () => {
    const id = await create({}, { unsavable: WHY });
    await waitUntil("it is paused", () => isIn(id, "paused"));
    expect(await find(id)).toMatchObject({ imageHasMemory: false, pauseReason: null });
    expect((await events(id)).at(-1)).toBe(`paused:memory_lost: ${WHY}`);
    // One pause at the timeout, one after the grace period, and one without memory.
    expect(api().node.countCalls("pause")).toBeGreaterThanOrEqual(3);
    const resumed = await api().call("POST", `/v2/sandboxes/${id}/connect`);
    expect(resumed).toMatchObject({ status: 201, headers: { "skerry-memory-lost": WHY } });
    expect((await api().call("POST", `/sandboxes/${id}/pause`, { body: { memory: false } })).status).toBe(204);
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).headers).not.toHaveProperty("skerry-memory-lost");
  });

  it("is no reason to lose anything once it can be saved", async () => {
    const id = await create({}, { unsavable: WHY });
    await waitUntil("it was tried", () => api().node.countCalls("pause") > 0);
    change(id, { unsavable: "" });
    await waitUntil("it is paused", () => isIn(id, "paused"));
    expect(await find(id)).toMatchObject({ imageHasMemory: true });
    expect((await events(id)).at(-1)).toBe("paused:timeout");
  });

  it("keeps its memory where only its files were to be kept and its agent is stopped", async () => {
    const id = await create({ autoPauseMemory: false }, { isSilent: true });
    await waitUntil("it is paused", () => isIn(id, "paused"));
    expect(await find(id)).toMatchObject({ imageHasMemory: true, agentUnresponsive: true });
    expect((await events(id)).at(-1)).toBe("paused:timeout");
  });

  it("ends it where no pause can be made of it at all", async () => {
    const id = await create({}, { unsavable: WHY, isSilent: true });
    await waitUntil("it has ended", () => isIn(id, "ended"));
    expect((await find(id))?.endReason).toBe("timeout");
    expect((await events(id)).slice(-3)).toEqual(["pause_failed:null", "expire:timeout", "gone:null"]);
  });

  it("does not end one that is given more time meanwhile", async () => {
    const id = await create({}, { unsavable: WHY, isSilent: true });
    await waitUntil("it was tried", () => api().node.countCalls("pause") > 0);
    await waitUntil("it runs", () => isIn(id, "running"));
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(200);
    const calls = api().node.countCalls("pause");
    await expire(id);
    await waitUntil("its grace begins anew", () => api().node.countCalls("pause") > calls);
    expect((await find(id))?.state).not.toBe("ended");
    await waitUntil("it has ended", () => isIn(id, "ended"));
    expect(api().node.countCalls("pause")).toBeGreaterThanOrEqual(calls + 3);
  });

  const codes = [Code.ResourceExhausted, Code.Unavailable, Code.DeadlineExceeded];
  it.each(sampleOf("failures that are no guest's", codes, (code) => code === Code.Unavailable))(
    "is not what a machine is to blame for (%i)",
    async (code) => {
      api().node.pause = code;
      const id = await create({}, {});
      await waitUntil("it was tried again after its grace", () => api().node.countCalls("pause") >= 2);
      await waitUntil("it runs", () => isIn(id, "running"));
      api().node.pause = "ok";
      await waitUntil("it is paused", () => isIn(id, "paused"));
      expect(await find(id)).toMatchObject({ imageHasMemory: true });
    },
  );
});
