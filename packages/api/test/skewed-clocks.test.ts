// Two API processes on hosts whose clocks differ. Only the database's clock and the heartbeats count.

import { setTimeout as sleep } from "node:timers/promises";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Api } from "../src/index.ts";
import { ApiHarness, startDatabases, type TestDatabases } from "./api-harness.ts";

const ROUNDS = 5;

describe.each([-3_600_000, -90_000, 90_000, 3_600_000])("an API process whose machine's clock is off by %s ms", (skewMs) => {
  let databases: TestDatabases;
  let api: ApiHarness;
  let stack: AsyncDisposableStack;
  let other: Api;
  let url: string;
  beforeAll(async () => {
    databases = await startDatabases();
  });
  afterAll(() => databases[Symbol.asyncDispose]());
  beforeEach(async () => {
    api = await ApiHarness.start(await databases.create("postgres"));
    stack = new AsyncDisposableStack();
    other = await api.createApiElsewhere(stack, skewMs, { ownerId: "api2", timing: { beatMs: 50, listTimeoutMs: 500 } });
    ({ url } = await other.listen());
  });
  afterEach(async () => {
    await stack.disposeAsync();
    await api[Symbol.asyncDispose]();
  });
  const find = (id: string) => api.store.sandboxes.find(id);
  /** Several heartbeats of this process, each with a round of reconciliation after it. */
  const watch = async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await sleep(60);
      await other.reconcile();
    }
  };

  it("leaves another one's creates and resumes alone", async () => {
    api.node.create = "hang";
    const creating = api.call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    await waitUntil("the node was asked", () => api.node.countCalls("create") === 1);
    await watch();
    api.node.create = "ok";
    api.node.release();
    const created = await creating;
    expect(created.status).toBe(201);
    const id = created.body.sandboxID as string;
    await api.call("POST", `/sandboxes/${id}/pause`);
    api.node.resume = "hang";
    const resuming = api.call("POST", `/v2/sandboxes/${id}/connect`);
    await waitUntil("the node was asked", () => api.node.countCalls("resume") === 1);
    await watch();
    api.node.resume = "ok";
    api.node.release();
    expect((await resuming).status).toBe(201);
    expect(await find(id)).toMatchObject({ state: "running" });
  });

  it("ends sandboxes when their time is over, and not before, whoever made them", async () => {
    const [here, there] = [await api.create({ timeout: 60 }), await api.create({ timeout: 60 }, { url })];
    const short = await api.create({ timeout: 1 }, { url });
    await waitUntil("the short one has ended", async () => (await find(short))?.state === "ended");
    await watch();
    for (const id of [here, there]) {
      expect(await find(id)).toMatchObject({ state: "running" });
      const { endAt } = (await api.call("GET", `/sandboxes/${id}`)).body;
      expect(Math.abs(Date.parse(endAt) - Date.now() - 60_000)).toBeLessThan(30_000);
    }
    expect((await find(short))?.endReason).toBe("timeout");
  });
});
