import { Code } from "@connectrpc/connect";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it, vi } from "vitest";
import { ListedSandboxSchema, SandboxDetailSchema, SandboxSchema } from "../src/http/schemas.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("pausing and resuming", { inSample: "postgres" }, (api) => {
  const post = (id: string, what: string, body?: unknown) =>
    api().call("POST", `/sandboxes/${id}/${what}`, body === undefined ? {} : { body });
  const connect = (id: string, body?: unknown) => api().call("POST", `/v2/sandboxes/${id}/connect`, body === undefined ? {} : { body });
  const detail = async (id: string) => (await api().call("GET", `/sandboxes/${id}`)).body;
  const stateOf = async (id: string) => (await api().store.sandboxes.find(id))?.state;
  const missing = (id: string) => ({ code: 404, message: `Sandbox "${id}" doesn't exist or you don't have access to it` });
  const events = async (id: string) =>
    (await api().store.sandboxes.listEvents(id)).map(({ event, to, reason }) => `${event}>${to}${reason ? `:${reason}` : ""}`);
  const paused = async (body: Record<string, unknown> = {}, pause?: object) => {
    const id = await api().create(body);
    expect((await post(id, "pause", pause)).status).toBe(204);
    return id;
  };

  it("keeps a sandbox as an image, and brings it back with its id, tokens and options", async () => {
    const body = { metadata: { a: "b" }, allow_internet_access: false, autoPause: true, autoResume: { enabled: true }, timeout: 100 };
    const created = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });
    const id = created.body.sandboxID;
    const before = await detail(id);
    expect(before).not.toHaveProperty("pauseMode");
    expect((await post(id, "pause")).status).toBe(204);
    expect(api().node.held.size).toBe(0);
    expect(api().node.images.size).toBe(1);
    const kept = await detail(id);
    expect(Value.Errors(SandboxDetailSchema, kept)).toEqual([]);
    expect(kept).toMatchObject({ state: "paused", pauseMode: "full", metadata: { a: "b" }, startedAt: before.startedAt });
    expect(kept).toMatchObject({ envdAccessToken: created.body.envdAccessToken, lifecycle: { autoResume: true, onTimeout: "pause" } });
    expect(kept).not.toHaveProperty("envdUnresponsiveAtPause");
    expect(Math.abs(Date.parse(kept.endAt) - Date.now())).toBeLessThan(30_000);
    const resumed = await connect(id, { timeout: 50 });
    expect(resumed.status).toBe(201);
    expect(Value.Errors(SandboxSchema, resumed.body)).toEqual([]);
    expect(resumed.body).toEqual(created.body);
    expect(resumed.headers).not.toHaveProperty("skerry-memory-lost");
    const after = await detail(id);
    expect(after).toMatchObject({ state: "running", metadata: { a: "b" }, allowInternetAccess: false });
    expect(after).not.toHaveProperty("pauseMode");
    expect(Date.parse(after.startedAt)).toBeGreaterThan(Date.parse(before.startedAt));
    expect(Date.parse(after.endAt) - Date.parse(after.startedAt)).toBe(50_000);
    const spec = { accessToken: created.body.envdAccessToken, withoutMemory: false, options: { allowInternetAccess: false } };
    expect(api().node.held.get(id)?.spec).toMatchObject(spec);
    await waitUntil("its image is gone", () => api().node.images.size === 0);
    expect(await events(id)).toEqual([
      "create>starting",
      "started>running",
      "pause>pausing:request",
      "paused>paused:request",
      "resume>resuming",
      "resumed>running",
    ]);
    const [made] = await api().store.sandboxes.listEvents(id);
    expect(made?.actor).toMatch(/^key:/);
  });

  it("answers each request in the state paused as it is specified", async () => {
    const id = await paused();
    expect((await post(id, "pause")).body).toEqual({ code: 409, message: `Error pausing sandbox - sandbox '${id}' is already paused` });
    expect((await post(id, "timeout", { timeout: 5 })).body).toEqual(missing(id));
    expect((await post(id, "refreshes")).body).toEqual(missing(id));
    expect((await post(id, "snapshots", {})).body).toEqual(missing(id));
    expect(await detail(id)).toMatchObject({ state: "paused" });
    const resumed = await post(id, "resume", {});
    expect(resumed.status).toBe(201);
    const { startedAt, endAt } = await detail(id);
    expect(Date.parse(endAt) - Date.parse(startedAt)).toBe(15_000);
    expect((await post(id, "resume", {})).body).toEqual({ code: 409, message: `Sandbox ${id} is already running` });
    expect((await connect(id)).status).toBe(200);
  });

  it("is refused for what is not there, and for bad bodies", async () => {
    const id = await api().create();
    for (const what of ["pause", "resume"]) {
      expect((await post("iunknown", what)).body).toEqual(missing("iunknown"));
      expect((await api().call("POST", `/sandboxes/${id}/${what}`, { key: api().otherKey })).body).toEqual(missing(id));
      expect((await post(id, what, { memory: "yes" })).body.message).toMatch(/^validation error/);
    }
    expect((await post(id, "resume", { timeout: 86_401 })).body).toEqual({ code: 400, message: "Timeout cannot be greater than 24 hours" });
    await api().call("DELETE", `/sandboxes/${id}`);
    const gone = await post(id, "pause");
    expect(gone.status).toBe(404);
    expect(gone.body.message).toMatch(/ It ended at .*: request$/);
  });

  it("has one pause for all who ask at once, and one resume", async () => {
    const id = await api().create();
    api().node.pause = "hang";
    const find = vi.spyOn(api().store.sandboxes, "find");
    const pauses = Array.from({ length: 5 }, () => post(id, "pause"));
    await waitUntil("one pauses, and the others wait for it", () => {
      const found = find.mock.settledResults.map(({ type, value }) => (type === "fulfilled" ? value?.state : undefined));
      return found.filter((state) => state === "pausing").length === 4;
    });
    find.mockRestore();
    await waitUntil("the node was asked", () => api().node.countCalls("pause") === 1);
    expect(await detail(id)).toMatchObject({ state: "paused" });
    expect(await detail(id)).not.toHaveProperty("pauseMode");
    expect((await post(id, "timeout", { timeout: 9 })).body).toEqual({ code: 409, message: `Sandbox "${id}" is being paused` });
    expect((await post(id, "fork")).body).toEqual({ code: 409, message: `Sandbox '${id}' cannot be forked while in 'pausing' state` });
    const snapshot = await post(id, "snapshots", {});
    expect(snapshot.body).toEqual({ code: 409, message: `Sandbox '${id}' cannot be snapshotted while in 'pausing' state` });
    const connects = [connect(id), post(id, "resume")];
    api().node.pause = "ok";
    api().node.release();
    expect((await Promise.all(pauses)).map(({ status }) => status)).toEqual(Array(5).fill(204));
    expect(api().node.countCalls("pause")).toBe(1);
    for (const { status } of await Promise.all(connects)) expect([200, 201, 409]).toContain(status);
    expect(api().node.countCalls("resume")).toBe(1);
    expect(await stateOf(id)).toBe("running");
    await post(id, "pause");
    const both = await Promise.all([1, 2, 3, 4].map((n) => (n % 2 ? connect(id) : post(id, "resume"))));
    for (const { status } of both) expect([200, 201, 409]).toContain(status);
    expect(api().node.countCalls("resume")).toBe(2);
  });

  it("waits for what is under way: kill, connect and pause while it is resumed or snapshotted", async () => {
    const id = await paused();
    api().node.resume = "hang";
    const resume = connect(id);
    await waitUntil("the node was asked", () => api().node.countCalls("resume") === 1);
    expect(await detail(id)).toMatchObject({ state: "paused" });
    const pause = post(id, "pause");
    api().node.resume = "ok";
    api().node.release();
    expect((await resume).status).toBe(201);
    expect((await pause).status).toBe(204);
    await connect(id);
    api().node.snapshot = "hang";
    const snapshot = post(id, "snapshots", {});
    await waitUntil("the node was asked", () => api().node.countCalls("snapshot") === 1);
    expect(await detail(id)).toMatchObject({ state: "running" });
    expect((await api().call("GET", "/v2/sandboxes?state=running")).body).toHaveLength(1);
    expect((await post(id, "timeout", { timeout: 9 })).body).toEqual({ code: 409, message: `Sandbox "${id}" is being snapshotted` });
    expect((await post(id, "resume")).body).toEqual({
      code: 409,
      message: `Sandbox snapshot is currently being created for sandbox '${id}'`,
    });
    const waiting = [connect(id), post(id, "pause"), api().call("DELETE", `/sandboxes/${id}`)];
    api().node.snapshot = "ok";
    api().node.release();
    expect((await snapshot).status).toBe(201);
    const [connected, , killed] = await Promise.all(waiting);
    expect([200, 201, 404, 409]).toContain(connected?.status);
    expect(killed?.status).toBe(204);
    expect(api().node.held.size).toBe(0);
    await waitUntil("only the snapshot is left", () => api().node.images.size === 1);
  });

  it("is undone by a kill in any state: the sandbox and its image go", async () => {
    const id = await paused();
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(204);
    expect(api().node.images.size).toBe(0);
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(404);
    expect((await connect(id)).status).toBe(404);
    const pausing = await api().create();
    api().node.pause = "hang";
    const pause = post(pausing, "pause");
    await waitUntil("the node was asked", () => api().node.countCalls("pause", pausing) === 1);
    const kill = api().call("DELETE", `/sandboxes/${pausing}`);
    api().node.pause = "ok";
    api().node.release();
    expect((await kill).status).toBe(204);
    expect((await pause).status).toBe(204);
    expect([api().node.held.size, api().node.images.size]).toEqual([0, 0]);
  });

  it("keeps a kill whose image could not be deleted until it can", async () => {
    const id = await paused();
    api().node.deleteImage = Code.Internal;
    expect((await api().call("DELETE", `/sandboxes/${id}`)).status).toBe(500);
    expect((await api().call("GET", `/sandboxes/${id}`)).status).toBe(404);
    api().node.deleteImage = "ok";
    await waitUntil("it has ended", async () => (await stateOf(id)) === "ended");
    expect(api().node.images.size).toBe(0);
  });

  it("keeps the disk alone where that is asked for, or is all that can be kept", async () => {
    const id = await paused({}, { memory: false });
    expect(await detail(id)).toMatchObject({ pauseMode: "filesystem" });
    expect((await connect(id)).status).toBe(201);
    const full = await paused();
    expect((await connect(full, { memory: false })).status).toBe(201);
    expect(api().node.held.get(full)?.spec.withoutMemory).toBe(true);
    api().node.keepsMemory = false;
    expect(await detail(await paused())).toMatchObject({ pauseMode: "filesystem" });
  });

  it("says so when memory was lost", async () => {
    const id = await paused();
    api().node.memoryLostReason = "the image was truncated\r\nX: y ü";
    const resumed = await connect(id);
    expect(resumed.status).toBe(201);
    expect(resumed.headers["skerry-memory-lost"]).toBe("the image was truncated X: y");
    expect((await events(id)).at(-1)).toMatch(/^resumed>running:memory_lost: the image was truncated/);
  });

  it("leaves a sandbox running whose pause failed", async () => {
    const id = await api().create();
    const { endAt } = await detail(id);
    for (const [failure, status, shouldRetry, message] of [
      [Code.Unavailable, 503, "true", /^Sandbox '.*' cannot be paused now: .* The sandbox keeps running$/],
      [Code.ResourceExhausted, 503, "true", /cannot be paused now/],
      [Code.Internal, 500, "false", /^Error pausing sandbox$/],
    ] as const) {
      api().node.pause = failure;
      const answer = await post(id, "pause");
      expect(answer.body).toEqual({ code: status, message: expect.stringMatching(message) });
      expect(answer.text).not.toContain("secret");
      expect(answer.headers["should-retry"]).toBe(shouldRetry);
      expect(answer.headers["retry-after"]).toBe(shouldRetry === "true" ? "1" : undefined);
      expect(await detail(id)).toMatchObject({ state: "running", endAt });
    }
    expect(await api().store.images.listOfPauses(id)).toEqual([]);
    api().node.pause = "ok";
    expect((await post(id, "pause")).status).toBe(204);
  });

  it("treats a sandbox whose agent is silent as it is told to", async () => {
    const id = await api().create();
    const silence = () => {
      const held = api().node.held.get(id);
      if (held) held.isSilent = true;
    };
    silence();
    expect((await post(id, "pause", { requireHealthyGuest: true })).status).toBe(503);
    expect((await post(id, "pause", { memory: false })).status).toBe(503);
    expect((await post(id, "pause")).status).toBe(204);
    expect(await detail(id)).toMatchObject({ envdUnresponsiveAtPause: true, pauseMode: "full" });
    const [listed] = (await api().call("GET", "/v2/sandboxes?state=paused")).body;
    expect(listed).toMatchObject({ envdUnresponsiveAtPause: true });
    for (const refused of [await connect(id), await post(id, "resume"), await post(id, "fork")]) {
      expect(refused.body).toMatchObject({ code: 409, error_code: "sandbox_snapshot_guest_agent_unresponsive" });
    }
    expect((await connect(id, { memory: false })).status).toBe(201);
    expect(await detail(id)).not.toHaveProperty("envdUnresponsiveAtPause");
  });

  it("stays paused when its resume fails", async () => {
    const id = await paused();
    for (const [failure, status, errorCode] of [
      [Code.ResourceExhausted, 503, "sandbox_capacity_unavailable"],
      [Code.Unavailable, 503, "sandbox_capacity_unavailable"],
      [Code.Internal, 500, "sandbox_create_failed"],
    ] as const) {
      api().node.resume = failure;
      const answer = await connect(id);
      expect(answer.body).toMatchObject({ code: status, error_code: errorCode });
      expect(answer.text).not.toContain("secret");
      expect(await detail(id)).toMatchObject({ state: "paused", pauseMode: "full" });
    }
    api().node.resume = "ok";
    expect((await connect(id)).status).toBe(201);
  });

  it("says what the node's image has, not what was asked for, when the answer to a pause is lost", async () => {
    const id = await api().create();
    api().node.keepsMemory = false;
    api().node.lost.set("pause", Code.Unavailable);
    await post(id, "pause");
    api().node.lost.clear();
    api().node.keepsMemory = true;
    await api().api.reconcile();
    expect((await api().call("GET", `/sandboxes/${id}`)).body).toMatchObject({ state: "paused", pauseMode: "filesystem" });
  });

  it("goes by what the node has when its answer is lost", async () => {
    const id = await api().create();
    api().node.lost.set("pause", Code.Unavailable);
    expect((await post(id, "pause")).status).toBe(204);
    expect(await detail(id)).toMatchObject({ state: "paused", pauseMode: "full" });
    api().node.lost.set("resume", Code.Internal);
    const resumed = await connect(id, { timeout: 70 });
    expect(resumed.status).toBe(201);
    const { startedAt, endAt } = await detail(id);
    expect(Math.abs(Date.parse(endAt) - Date.parse(startedAt) - 70_000)).toBeLessThan(30_000);
    api().node.lost.clear();
    await waitUntil("its image is gone", () => api().node.images.size === 0);
    expect((await post(id, "pause")).status).toBe(204);
  });

  it("shows both kinds in lists, each with its own times and counts", async () => {
    const old = await paused({ metadata: { n: "1" } });
    const running = await api().create({ metadata: { n: "1" } });
    const list = async (query: string) => await api().call("GET", `/v2/sandboxes${query}`);
    const ids = (answer: { body: { sandboxID: string }[] }) => answer.body.map(({ sandboxID }) => sandboxID);
    const all = await list("");
    expect(ids(all)).toEqual([running, old]);
    for (const row of all.body) expect(Value.Errors(ListedSandboxSchema, row)).toEqual([]);
    expect(all.headers["x-total-running"]).toBe("1");
    expect(ids(await list("?state=running"))).toEqual([running]);
    const kept = await list("?state=paused&metadata=n%3D1");
    expect(ids(kept)).toEqual([old]);
    expect(kept.body[0].state).toBe("paused");
    expect(kept.headers).not.toHaveProperty("x-total-running");
    const first = await list("?limit=1&order=asc");
    expect(ids(first)).toEqual([old]);
    expect(ids(await list(`?limit=1&order=asc&nextToken=${first.headers["x-next-token"]}`))).toEqual([running]);
    expect(ids(await api().call("GET", "/sandboxes"))).toEqual([running]);
  });

  it("begins from what it was told at the resume", async () => {
    const id = await paused({ autoPause: true });
    expect((await post(id, "resume", { timeout: 60, autoPause: false })).status).toBe(201);
    expect((await detail(id)).lifecycle).toEqual({ autoResume: false, onTimeout: "kill" });
    expect(api().node.held.get(id)?.spec.imageId).toMatch(/^[a-z0-9]{20}$/);
  });
});

describeOnEachDatabase("what happens when a sandbox's time is over", { inSample: "postgres" }, (api) => {
  const expire = async (id: string) => {
    const now = Date.now();
    await api().store.sandboxes.setEnd(id, { endAt: now, now, onlyLater: false });
  };
  const detail = async (id: string) => (await api().call("GET", `/sandboxes/${id}`)).body;

  it("is a pause where that was asked for, with or without memory", async () => {
    const full = await api().create({ autoPause: true });
    const files = await api().create({ autoPause: true, autoPauseMemory: false });
    const killed = await api().create({ autoPause: false });
    await Promise.all([full, files, killed].map(expire));
    await waitUntil("both are paused", async () => (await detail(full)).pauseMode && (await detail(files)).pauseMode);
    expect(await detail(full)).toMatchObject({ state: "paused", pauseMode: "full" });
    expect(await detail(files)).toMatchObject({ state: "paused", pauseMode: "filesystem" });
    await waitUntil("the other is gone", async () => (await detail(killed)).code === 404);
    const events = await api().store.sandboxes.listEvents(full);
    expect(events.at(-1)).toMatchObject({ event: "paused", reason: "timeout", actor: "platform" });
  });

  it("is a pause for many, a few at a time, and none is lost", async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, () => api().create({ autoPause: true })));
    await Promise.all(ids.map(expire));
    await waitUntil(
      "all are paused",
      async () => (await api().call("GET", "/v2/sandboxes?state=paused")).body.every((row: object) => row) && api().node.images.size === 30,
    );
    expect(api().node.countCalls("pause")).toBe(30);
  });

  it("is tried again when the pause fails, and the sandbox can be kept meanwhile", async () => {
    const id = await api().create({ autoPause: true });
    api().node.pause = Code.Internal;
    await expire(id);
    await waitUntil("it was tried", () => api().node.countCalls("pause") === 1);
    await waitUntil("it runs on", async () => (await api().store.sandboxes.find(id))?.state === "running");
    const { endAt } = await detail(id);
    expect(Date.parse(endAt)).toBeLessThanOrEqual(Date.now());
    await waitUntil("it was tried again", () => api().node.countCalls("pause") === 2);
    await waitUntil("it runs on again", async () => (await api().store.sandboxes.find(id))?.state === "running");
    expect((await api().call("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(200);
    api().node.pause = "ok";
    await expire(id);
    await waitUntil("it is paused", async () => (await detail(id)).pauseMode === "full");
  });

  it("refuses options that contradict each other", async () => {
    for (const [option, message] of [
      [{ autoPauseMemory: false }, "autoPauseMemory=false only applies when autoPause is true."],
      [{ autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } }, /cannot be combined with autoResume/],
    ] as const) {
      const answer = await api().call("POST", "/v2/sandboxes", { body: { templateID: "base", ...option } });
      expect(answer.body).toEqual({ code: 400, message: typeof message === "string" ? message : expect.stringMatching(message) });
    }
  });
});

describeOnEachDatabase("a team's limit", { inSample: "postgres", limits: { sandboxes: 2 } }, (api) => {
  const refusal = { code: 429, message: expect.stringMatching(/^you have reached the maximum number of concurrent E2B sandboxes \(2\)/) };

  it("holds for creates, resumes and forks; what is paused does not count", async () => {
    const create = () => api().call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    const answers = await Promise.all([create(), create(), create(), create()]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 429, 429]);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.body).toEqual(refusal);
    expect(refused?.headers["should-retry"]).toBe("false");
    expect(refused?.headers).not.toHaveProperty("retry-after");
    const [first = "", second = ""] = answers.filter(({ status }) => status === 201).map(({ body }) => body.sandboxID);
    expect((await api().call("POST", "/v2/sandboxes", { key: api().otherKey, body: { templateID: "base" } })).status).toBe(201);
    await api().call("POST", `/sandboxes/${first}/pause`);
    await api().create();
    const resume = await api().call("POST", `/v2/sandboxes/${first}/connect`);
    expect(resume.body).toEqual(refusal);
    expect(await api().store.sandboxes.find(first)).toMatchObject({ state: "paused" });
    const fork = await api().call("POST", `/sandboxes/${second}/fork`);
    expect(fork.status).toBe(201);
    expect(fork.body).toEqual([{ error: refusal }]);
    expect((await api().call("POST", `/sandboxes/${second}/fork`, { body: { count: 2 } })).body).toEqual({
      code: 400,
      message: "Count must be lower than the maximum number of concurrent sandboxes (2)",
    });
    await api().call("DELETE", `/sandboxes/${second}`);
    expect((await api().call("POST", `/v2/sandboxes/${first}/connect`)).status).toBe(201);
  });
});
