import { waitUntil } from "@skerry/testkit/wait-until";
import { Value } from "typebox/value";
import { expect, it } from "vitest";
import { EventSchema } from "../src/http/output/encode-event.ts";
import { describeOnEachDatabase } from "./each-database.ts";
import { openStream } from "./event-stream.ts";

const WRONG_QUERIES = [
  "?types=x",
  "?limit=0",
  "?limit=101",
  "?start=now",
  "?nextToken=x",
  "?order=up",
  "?after=3&order=desc",
  "?after=3&start=2026-01-01T00:00:00Z",
];

describeOnEachDatabase("events", { inSample: "both", timing: { eventHeartbeatMs: 300 } }, (api) => {
  const list = async (query = "", options = {}) => {
    const answer = await api().call("GET", `/events${query}`, options);
    expect(answer.status, answer.text).toBe(200);
    for (const event of answer.body) expect([...Value.Errors(EventSchema, event)], JSON.stringify(event)).toEqual([]);
    return answer;
  };
  /** Waits for so many events. */
  const following = async (count: number, query = "?order=asc") => {
    await waitUntil("the events are there", async () => (await list(query)).body.length >= count);
    return (await list(query)).body;
  };
  const post = (path: string, body: object = {}) => api().call("POST", path, { body });

  it("tell the life of a sandbox as E2B's receivers know it", async () => {
    const id = await api().create({ metadata: { user: "1" }, timeout: 600, network: { denyOut: ["10.0.0.0/8"] } });
    await post(`/sandboxes/${id}/timeout`, { timeout: 900 });
    expect((await api().call("PUT", `/sandboxes/${id}/network`, { body: { denyOut: ["11.0.0.0/8"] } })).status).toBe(204);
    const snapshot = await post(`/sandboxes/${id}/snapshots`, { name: "saved" });
    expect(snapshot.status, snapshot.text).toBe(201);
    await post(`/sandboxes/${id}/pause`);
    await post(`/sandboxes/${id}/connect`, { timeout: 300 });
    const kill = await api().call("DELETE", `/sandboxes/${id}`);
    const events = await following(7, `?sandboxID=${id}&order=asc`);
    const names = ["created", "updated", "updated", "checkpointed", "paused", "resumed", "killed"];
    expect(events.map(({ type }: { type: string }) => type)).toEqual(names.map((name) => `sandbox.lifecycle.${name}`));
    const [created, updated, rules, checkpointed, paused, resumed, killed] = events;
    const about = { sandbox_id: id, sandbox_team_id: api().teamId, sandbox_build_id: api().buildId, sandbox_template_id: api().templateId };
    for (const event of events) expect(event).toMatchObject({ version: "v2", event_category: "lifecycle", events_ttl_days: 7, ...about });
    expect(created).toMatchObject({
      event_label: "create",
      subject_id: id,
      team_id: api().teamId,
      actor: { type: "key", id: expect.any(String) },
      request_id: expect.any(String),
      event_data: {
        sandbox_metadata: { user: "1" },
        network_egress: { allowed_cidrs: [], denied_cidrs: ["10.0.0.0/8"], allowed_domains: [] },
        execution: { started_at: expect.any(String), vcpu_count: 2, memory_mb: 512 },
      },
    });
    expect(Date.parse(updated.event_data.set_timeout)).toBeGreaterThan(Date.parse(created.event_data.set_timeout));
    expect(rules.event_data.network_egress.denied_cidrs).toEqual(["11.0.0.0/8"]);
    const saved = snapshot.body.snapshotID.split("/").at(-1).split(":")[0];
    expect(checkpointed.event_data.snapshot.build_id).toEqual(expect.any(String));
    expect(saved).toBe("saved");
    expect(paused.event_data.execution.execution_time).toBeGreaterThanOrEqual(0);
    expect(paused.sandbox_execution_id).toBe(created.sandbox_execution_id);
    expect(resumed.sandbox_execution_id).not.toBe(created.sandbox_execution_id);
    expect(killed).toMatchObject({ event_label: "kill", reason: "request", event_data: { kill_reason: "request" } });
    expect(killed.request_id).toBe(kill.headers["x-request-id"]);
    expect(new Set(events.map((event: { id: string }) => event.id)).size).toBe(7);
  });

  it("tell of keys, secrets and templates, and contain no value of them", async () => {
    const made = await api().call("POST", `/admin/teams/${api().teamId}/api-keys`, {
      body: { name: "ci" },
      key: null,
      headers: { "X-Admin-Token": api().adminToken },
    });
    expect(made.status).toBe(201);
    await post("/secrets", { name: "token", value: "plain-4711" });
    await post("/secrets/token", { value: "plain-4712" });
    await api().call("DELETE", "/secrets/token");
    await post("/v3/templates", { name: "web", cpuCount: 1, memoryMB: 512 });
    await api().call("DELETE", "/templates/web");
    // The last one: a build that waits for its start ends with its template.
    await following(8);
    const { body, text } = await list("?order=asc");
    expect(body.map(({ type }: { type: string }) => type)).toEqual([
      "key.lifecycle.created",
      "secret.lifecycle.created",
      "secret.lifecycle.updated",
      "secret.lifecycle.deleted",
      "template.lifecycle.created",
      "build.lifecycle.created",
      "template.lifecycle.deleted",
      "build.lifecycle.failed",
    ]);
    expect(body[0]).toMatchObject({ actor: { type: "operator" }, event_data: { name: "ci" } });
    for (const value of ["plain-4711", "plain-4712", made.body.key, made.body.key.slice(4)]) expect(text).not.toContain(value);
  });

  it("come in pages, filtered, and only to their own team", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) ids.push(await api().create());
    await api().call("DELETE", `/sandboxes/${ids[0]}`);
    const all = await following(6);
    expect(all.map(({ sequence }: { sequence: number }) => sequence)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const order of ["asc", "desc"]) {
      const walked: number[] = [];
      for (let token = ""; ; ) {
        const page = await list(`?limit=2&order=${order}${token}`);
        walked.push(...page.body.map(({ sequence }: { sequence: number }) => sequence));
        const next = page.headers["x-next-token"];
        if (next === undefined) break;
        token = `&nextToken=${next}`;
      }
      expect(walked).toEqual(order === "asc" ? [1, 2, 3, 4, 5, 6] : [6, 5, 4, 3, 2, 1]);
    }
    expect((await list("?after=4")).body.map(({ sequence }: { sequence: number }) => sequence)).toEqual([5, 6]);
    expect((await list("?types=sandbox.lifecycle.killed")).body).toMatchObject([{ sandbox_id: ids[0] }]);
    const { timestamp } = all[2];
    expect((await list(`?start=${timestamp}&order=asc`)).body[0].timestamp).toBe(timestamp);
    expect((await list(`?end=${all[0].timestamp}`)).body).toEqual([]);
    // Its own key, which the harness made.
    expect((await list("", { key: api().otherKey })).body).toMatchObject([{ type: "key.lifecycle.created", sequence: 1 }]);
    expect((await list(`?sandboxID=${ids[0]}`, { key: api().otherKey })).body).toEqual([]);
    for (const query of WRONG_QUERIES) {
      expect((await api().call("GET", `/events${query}`)).status, query).toBe(400);
    }
    expect((await api().call("GET", "/events", { key: null })).status).toBe(401);
  });

  it("of all teams are for the operator alone", async () => {
    await api().create();
    await api().create({}, { key: api().otherKey });
    const admin = { key: null, headers: { "X-Admin-Token": api().adminToken } };
    const read = async (query: string) => await api().call("GET", `/admin/events${query}`, admin);
    // And the key of the other team.
    await waitUntil("both are there", async () => (await read("")).body.length === 3);
    expect((await read(`?teamID=${api().teamId}&types=sandbox.lifecycle.created`)).body).toMatchObject([{ team_id: api().teamId }]);
    expect((await read("?types=sandbox.lifecycle.created")).status).toBe(400);
    for (const path of ["/admin/events", "/admin/events/stream"]) expect((await api().call("GET", path)).status).toBe(401);
    await using stream = await openStream(`${api().url}/admin/events/stream?lastEventID=0`, { "X-Admin-Token": api().adminToken });
    expect((await stream.take(3)).map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  it("stream as they happen, from the last one that the reader saw, to any number of readers on any process", async () => {
    const first = await api().create();
    await following(1);
    await using second = await api().createSecond({ timing: { eventHeartbeatMs: 300 } });
    const { url } = await second.listen();
    const headers = { "X-API-Key": api().apiKey };
    await using live = await openStream(`${api().url}/events/stream`, headers);
    await using resumed = await openStream(`${url}/events/stream`, { ...headers, "Last-Event-ID": "0" });
    await using kills = await openStream(`${url}/events/stream?types=sandbox.lifecycle.killed`, headers);
    await using foreign = await openStream(`${api().url}/events/stream?lastEventID=1`, { "X-API-Key": api().otherKey });
    for (const stream of [live, resumed, kills, foreign]) await stream.alive();
    const later = await api().create();
    await api().call("DELETE", `/sandboxes/${first}`);
    expect((await live.take(2)).map(({ data }) => data.sandbox_id)).toEqual([later, first]);
    expect((await resumed.take(3)).map(({ id, data }) => [id, data.sandbox_id])).toEqual([
      [1, first],
      [2, later],
      [3, first],
    ]);
    expect(await kills.take(1)).toMatchObject([{ id: 3, event: "sandbox.lifecycle.killed" }]);
    await foreign.alive();
    expect(foreign.count).toBe(0);
    expect((await api().call("GET", "/events/stream", { headers: { "Last-Event-ID": "x" } })).status).toBe(400);
  });

  it("stop streaming to a key that was deleted, and at the end of the process", async () => {
    const admin = { key: null, headers: { "X-Admin-Token": api().adminToken } };
    const { body } = await api().call("POST", `/admin/teams/${api().teamId}/api-keys`, { ...admin, body: { name: "ci" } });
    await using revoked = await openStream(`${api().url}/events/stream`, { "X-API-Key": body.key });
    await using kept = await openStream(`${api().url}/events/stream`, { "X-API-Key": api().apiKey });
    await Promise.all([revoked.alive(), kept.alive()]);
    await api().call("DELETE", `/admin/teams/${api().teamId}/api-keys/${body.id}`, admin);
    await revoked.ended;
    await kept.alive();
    await api().api.close();
    await kept.ended;
  });

  it("limit how many streams a team has open", async () => {
    await using stack = new AsyncDisposableStack();
    const headers = { "X-API-Key": api().apiKey };
    for (let count = 0; count < 50; count++) await openStream(`${api().url}/events/stream`, headers, stack);
    await expect.poll(async () => (await openStream(`${api().url}/events/stream`, headers, stack)).status).toBe(429);
    expect((await openStream(`${api().url}/events/stream`, { "X-API-Key": api().otherKey }, stack)).status).toBe(200);
  });
});
