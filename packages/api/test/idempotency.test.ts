import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { scaled } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import type { Answer } from "./api-harness.ts";
import { describeOnEachDatabase } from "./each-database.ts";

describeOnEachDatabase("requests with an Idempotency-Key", { inSample: "both" }, (api) => {
  const post = (path: string, key: string, body: unknown, options: object = {}) =>
    api().call("POST", path, { body, headers: { "Idempotency-Key": key }, ...options });
  const create = (key: string, body: object = {}) => post("/v2/sandboxes", key, { templateID: "base", ...body });
  const countHeld = () => api().node.held.size;
  const original = ({ status, body }: Answer) => ({ status, body });
  const record = (key: string) => api().store.idempotency.find(api().teamId, key);

  it("are answered again as they were, whatever has become of what they made", async () => {
    const first = await create("k-1", { metadata: { a: "1", b: "2" } });
    expect(first.status).toBe(201);
    const again = await create("k-1", { metadata: { b: "2", a: "1" } });
    expect(original(again)).toEqual(original(first));
    expect(countHeld()).toBe(1);
    await api().call("DELETE", `/sandboxes/${first.body.sandboxID}`);
    expect(original(await create("k-1", { metadata: { a: "1", b: "2" } }))).toEqual(original(first));
    expect(countHeld()).toBe(0);
    expect(JSON.stringify(await record("k-1"))).not.toContain(first.body.envdAccessToken);
  });

  it("are one also when they come at once, here and at another process", async () => {
    await using second = await api().createSecond();
    const { url } = await second.listen();
    api().node.create = "hang";
    const body = JSON.stringify({ templateID: "base" });
    const headers = { "X-API-Key": api().apiKey, "Idempotency-Key": "k-1", "Content-Type": "application/json" };
    const elsewhere = async () => {
      const response = await fetch(`${url}/v2/sandboxes`, { method: "POST", headers, body });
      return { status: response.status, body: await response.json() };
    };
    const asked = [create("k-1"), elsewhere(), create("k-1"), elsewhere()];
    await waitUntil("the node was asked", () => api().node.countCalls("create") === 1);
    api().node.create = "ok";
    api().node.release();
    const answers = await Promise.all(asked);
    for (const answer of answers) expect({ status: answer.status, body: answer.body }).toEqual({ status: 201, body: answers[0]?.body });
    expect(api().node.countCalls("create")).toBe(1);
  });

  it("are one of many that come at once, again and again, at two processes", async () => {
    await using second = await api().createSecond();
    const { url } = await second.listen();
    const rounds = scaled("rounds of requests with one key at once", { sample: 5, full: 150 });
    for (let round = 0; round < rounds; round += 1) {
      const options = (index: number) => (index % 2 ? {} : { url });
      const asked = Array.from({ length: 16 }, (_, index) => post("/v2/sandboxes", `k-${round}`, { templateID: "base" }, options(index)));
      const answers = await Promise.all(asked);
      const made = new Set(answers.map(({ status, body }) => `${status} ${body.sandboxID}`));
      expect([...made]).toEqual([`201 ${answers[0]?.body.sandboxID}`]);
      expect(countHeld()).toBe(round + 1);
    }
    const [id = ""] = [...api().node.held.keys()];
    const forks = await Promise.all(
      Array.from({ length: 16 }, (_, index) => post(`/sandboxes/${id}/fork`, "k-fork", { count: 2 }, index % 2 ? {} : { url })),
    );
    expect(new Set(forks.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(countHeld()).toBe(rounds + 2);
  });

  it("are one also when the process hears late that it is the first", async () => {
    const { idempotency } = api().store;
    const reserve = idempotency.reserve.bind(idempotency);
    idempotency.reserve = async (...about) => {
      const held = await reserve(...about);
      // Other processes already see in the database that this process has reserved the key.
      if (!held) await sleep(300);
      return held;
    };
    const answers = await Promise.all(Array.from({ length: 8 }, () => create("k-late")));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.sandboxID}`)).size).toBe(1);
    expect(countHeld()).toBe(1);
  });

  it("are refused for another request, and belong to the team", async () => {
    const first = await create("k-1");
    for (const other of [await create("k-1", { timeout: 9 }), await post(`/sandboxes/${first.body.sandboxID}/fork`, "k-1", {})]) {
      expect(other.body).toMatchObject({ code: 422, error_code: "idempotency_request_mismatch" });
    }
    const foreign = await post("/v2/sandboxes", "k-1", { templateID: "base" }, { key: api().otherKey });
    expect(foreign.status).toBe(201);
    expect(foreign.body.sandboxID).not.toBe(first.body.sandboxID);
  });

  it("need a key of the right form, after everything else is right", async () => {
    for (const key of ["", "K", "a b", "a_b", "x".repeat(256)]) {
      expect((await create(key)).body).toEqual({
        code: 400,
        message: expect.stringMatching(/^validation error: the header Idempotency-Key/),
      });
    }
    expect((await create("x".repeat(255))).status).toBe(201);
    expect((await post("/v2/sandboxes", "k", {})).body.message).toMatch(/^validation error: body/);
  });

  it("may be tried again when they failed, which left nothing", async () => {
    api().node.create = Code.Internal;
    expect((await create("k-1")).status).toBe(500);
    expect((await create("k-2", { templateID: "nope" })).status).toBe(404);
    api().node.create = "ok";
    expect((await create("k-1")).status).toBe(201);
    expect((await create("k-2")).status).toBe(201);
    await waitUntil("two are left", () => countHeld() === 2);
  });

  it("are carried out though their caller goes, who gets the answer when he comes back", async () => {
    api().node.create = "hang";
    const leaving = new AbortController();
    const gone = fetch(`${api().url}/v2/sandboxes`, {
      method: "POST",
      headers: { "X-API-Key": api().apiKey, "Idempotency-Key": "k-1", "Content-Type": "application/json" },
      body: JSON.stringify({ templateID: "base" }),
      signal: leaving.signal,
    }).catch(() => "gone");
    await waitUntil("the node was asked", () => countHeld() === 1);
    leaving.abort();
    expect(await gone).toBe("gone");
    api().node.create = "ok";
    api().node.release();
    const answer = await create("k-1");
    expect(answer.status).toBe(201);
    expect([...api().node.held.keys()]).toEqual([answer.body.sandboxID]);
  });

  it("make forks and snapshots once too", async () => {
    const id = await api().create();
    const fork = () => post(`/sandboxes/${id}/fork`, "k-fork", { count: 2 });
    const forked = await fork();
    expect(forked.body).toHaveLength(2);
    expect(original(await fork())).toEqual(original(forked));
    expect(countHeld()).toBe(3);
    const take = () => post(`/sandboxes/${id}/snapshots`, "k-snapshot", {});
    const taken = await take();
    expect(taken.status).toBe(201);
    expect(original(await take())).toEqual(original(taken));
    expect(api().node.countCalls("snapshot")).toBe(2);
    const v1 = () => post("/sandboxes", "k-v1", { templateID: "base" });
    expect(original(await v1())).toEqual(original(await v1()));
    // Both versions of the route count as the same request.
    expect((await post("/v2/sandboxes", "k-v1", { templateID: "base" })).status).toBe(422);
  });

  it("are found out when their process is gone: by what they made", async () => {
    const { idempotency, sandboxes } = api().store;
    const fingerprint = async (key: string) => (await record(key))?.fingerprint ?? "";
    /** The state that a process leaves when it is killed before it stores the answer. */
    const leave = async (key: string, subjects: readonly string[], owner = "api1/gone") => {
      const from = await fingerprint("k-pattern");
      await idempotency.reserve({ teamId: api().teamId, key, fingerprint: from, owner, createdAt: Date.now(), subjects }, 0);
    };
    const pattern = await create("k-pattern");
    // The sandbox ran, so it is the answer.
    const made = await api().create();
    await leave("k-made", [made]);
    expect(await create("k-made")).toMatchObject({ status: 201, body: { sandboxID: made } });
    expect(await record("k-made")).toMatchObject({ answer: { status: 201 } });
    // Nothing was made, so the request is carried out.
    await leave("k-none", ["inever"]);
    const anew = await create("k-none");
    expect(anew.status).toBe(201);
    expect(anew.body.sandboxID).not.toBe("inever");
    // The create was unfinished: it is ended, and a new sandbox is created.
    const row = await sandboxes.find(pattern.body.sandboxID);
    if (!row) throw new Error("there is no pattern");
    await sandboxes.insert({ ...row, id: "ihalf", owner: "api1/gone", createdAt: Date.now() }, { actor: "key:test" });
    await leave("k-half", ["ihalf"]);
    expect((await create("k-half")).status).toBe(201);
    await waitUntil("the half made one has ended", async () => (await sandboxes.find("ihalf"))?.endReason === "abandoned");
    // Another process works on the request, so the repetition waits. It takes the request over only after the longest possible duration.
    await api().store.processes.beat("api7/there", 1);
    await api().api.reconcile();
    await leave("k-other", [made], "api7/there");
    const waiting = create("k-other");
    await new Promise((resolve) => setTimeout(resolve, 300));
    await idempotency.release({ teamId: api().teamId, key: "k-other", owner: "api7/there", subjects: [made] });
    expect((await waiting).status).toBe(201);
  });

  it("make nothing twice where the answer could not be stored: repetitions find out what was made", async () => {
    const { idempotency } = api().store;
    const finish = idempotency.finish.bind(idempotency);
    let failures = 2;
    idempotency.finish = async (...about) => {
      failures -= 1;
      if (failures >= 0) throw new Error("the connection was lost");
      return await finish(...about);
    };
    const first = await create("k-unstored");
    expect(first.status).toBe(201);
    for (const _ of [1, 2, 3]) expect(original(await create("k-unstored"))).toEqual(original(first));
    expect(failures).toBeLessThan(0);
    expect(countHeld()).toBe(1);
    const forks = await Promise.all([1, 2].map(() => post(`/sandboxes/${first.body.sandboxID}/fork`, "k-fork", { count: 2 })));
    expect(new Set(forks.map(({ status }) => status))).toEqual(new Set([201]));
    expect(countHeld()).toBe(3);
  });

  it("are found out for forks: those that are up, and those that are not", async () => {
    const id = await api().create();
    const forked = await post(`/sandboxes/${id}/fork`, "k-1", { count: 2 });
    const up = forked.body[0].sandbox;
    const held = await record("k-1");
    if (!held) throw new Error("there is no record");
    const { answer: _answer, ...rest } = held;
    await api().store.idempotency.reserve({ ...rest, key: "k-2", owner: "api1/gone", subjects: [up.sandboxID, "inever"] }, 0);
    const again = await post(`/sandboxes/${id}/fork`, "k-2", { count: 2 });
    expect(again.body).toEqual([{ sandbox: up }, { error: { code: 500, message: expect.stringMatching(/^Failed to place sandbox/) } }]);
  });

  it("are forgotten after a day", async () => {
    const first = await create("k-1");
    await api().store.idempotency.forget(Date.now() - 23 * 3_600_000);
    expect(original(await create("k-1"))).toEqual(original(first));
    await api().store.idempotency.forget(Date.now() + 1);
    expect((await create("k-1")).body.sandboxID).not.toBe(first.body.sandboxID);
  });
});
