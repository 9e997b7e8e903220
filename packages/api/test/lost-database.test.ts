import { startPostgres } from "@skerry/testkit/postgres";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { ApiHarness } from "./api-harness.ts";
import { begun, ended, startBuild, statusOf } from "./build-calls.ts";

it("outlives its database: says no more than that it failed, and goes on when the database is back", async () => {
  await using postgres = await startPostgres();
  await using api = await ApiHarness.start(await postgres.createDatabase("lost"));
  const [kept, expiring] = [await api.create(), await api.create({ timeout: 2 })];
  // Also in the middle of transactions.
  const working = Array.from({ length: 40 }, () => api.call("POST", "/v2/sandboxes", { body: { templateID: "base" } }));
  await waitUntil("some are under way", () => api.node.countCalls("create") > 5);
  await postgres.crash();
  const outcomes = new Set((await Promise.all(working)).map(({ status }) => status));
  // 500: the operation may have begun. 503: the caller was not authenticated yet.
  expect([...outcomes].filter((status) => ![201, 500, 503].includes(status))).toEqual([]);
  for (const [method, path, body] of [
    ["POST", "/v2/sandboxes", { templateID: "base" }],
    ["GET", `/sandboxes/${kept}`],
    ["DELETE", `/sandboxes/${kept}`],
  ] as const) {
    const answer = await api.call(method, path, body ? { body } : {});
    expect(answer.body).toEqual({
      code: 503,
      message: expect.stringMatching(/^The platform's database cannot be reached now; nothing was begun/),
    });
    expect(answer.headers).toMatchObject({ "should-retry": "true", "retry-after": "1" });
  }
  expect((await api.call("GET", "/health")).status).toBe(200);
  // A failed create is removed from the node without waiting for the database.
  const told = (await Promise.all(working)).filter(({ status }) => status === 201).length;
  const others = () => [...api.node.held.keys()].filter((id) => id !== kept && id !== expiring);
  await waitUntil("the node holds what callers know of", () => others().length === told);
  await postgres.restart();
  await waitUntil("what is over has ended", async () => (await api.store.sandboxes.find(expiring))?.state === "ended");
  expect((await api.call("GET", `/sandboxes/${kept}`)).status).toBe(200);
  // After a reconciliation, no sandbox is left of a create whose entry could not be written.
  await waitUntil("the node holds what has an entry", async () => {
    await api.api.reconcile();
    const live = await api.store.sandboxes.filterLive([...api.node.held.keys()]);
    return live.size === api.node.held.size && !live.has(expiring) && live.has(kept);
  });
});

it("finds out what became of pauses, resumes and snapshots whose end it could not write down", async () => {
  await using postgres = await startPostgres();
  await using api = await ApiHarness.start(await postgres.createDatabase("lost"), {
    timing: { pauseTimeoutMs: 30_000, resumeTimeoutMs: 30_000, snapshotTimeoutMs: 30_000 },
  });
  const post = (id: string, what: string) => api.call("POST", `/sandboxes/${id}/${what}`, { body: { timeout: 100 } });
  const [pausing, resuming, snapshotting] = [await api.create(), await api.create(), await api.create()];
  expect((await post(resuming, "pause")).status).toBe(204);
  Object.assign(api.node, { pause: "hang", resume: "hang", snapshot: "hang" });
  const working = [post(pausing, "pause"), post(resuming, "connect"), post(snapshotting, "snapshots")];
  await waitUntil("all are under way", () => api.node.hanging === 3);
  await postgres.crash();
  Object.assign(api.node, { pause: "ok", resume: "ok", snapshot: "ok" });
  api.node.release();
  expect((await Promise.all(working)).map(({ status }) => status)).toEqual([503, 503, 500]);
  await postgres.restart();
  const stateOf = async (id: string) => (await api.store.sandboxes.find(id))?.state;
  await waitUntil(
    "all have settled",
    async () => (await Promise.all([pausing, resuming, snapshotting].map(stateOf))).join() === "paused,running,running",
  );
  expect((await post(pausing, "connect")).status).toBe(201);
  expect((await post(resuming, "pause")).status).toBe(204);
  expect((await post(snapshotting, "snapshots")).status).toBe(201);
});

it("follows builds on when the database is back, with every line once", async () => {
  await using postgres = await startPostgres();
  await using api = await ApiHarness.start(await postgres.createDatabase("lost"));
  const { builds } = api.node;
  builds.holds = true;
  const ids = await startBuild(api, "web");
  const queued = await startBuild(api, "queued", { fromTemplate: "base" });
  await begun(api, ids);
  await begun(api, queued);
  builds.say(ids.buildID, "one");
  await waitUntil("it is stored", async () => (await statusOf(api, ids)).logEntries.length === 1);
  await postgres.crash();
  builds.say(ids.buildID, "two");
  builds.say(ids.buildID, "three");
  builds.succeed(ids.buildID);
  builds.fail(queued.buildID, "no", "1");
  await postgres.restart();
  const status = await ended(api, ids);
  expect(status.logEntries.map(({ message }: { message: string }) => message)).toEqual(["one", "two", "three"]);
  expect(await ended(api, queued)).toMatchObject({ status: "error", reason: { message: "no", step: "1" } });
  await waitUntil("the node has forgotten both", () => builds.held.size === 0);
});
