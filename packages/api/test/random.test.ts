// Sends random requests from several callers to two API processes with one database. The node fails at random, before or after it has carried
// out a call. In the end nothing may be left over, and every journal must be consistent.

import { Code } from "@connectrpc/connect";
import type { FakeBehaviour, FakeMethod } from "@skerry/testkit/fake-node";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { next, PASSING_STATES, type SandboxEvent } from "../src/sandboxes/lifecycle/lifecycle.ts";
import { describeOnEachDatabase } from "./each-database.ts";

const STEPS = 240;
const CALLERS = 8;
const METHODS: readonly FakeMethod[] = ["create", "kill", "pause", "resume", "snapshot", "deleteImage"];
const FAILURES: readonly Code[] = [Code.Internal, Code.Unavailable, Code.ResourceExhausted];

/** A small generator with a seed, so that a failed run can be repeated. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describeOnEachDatabase(
  "random requests to two processes",
  { inSample: "postgres", timing: { strayImageMs: 1_000, reconcileMs: 200, beatMs: 500 } },
  (api) => {
    it.each([1, 2])("leave one story and nothing else (%s)", async (seed) => {
      const random = randomOf(seed);
      const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
      await using second = await api().createSecond();
      const { url } = await second.listen();
      const urls = [api().url, url];
      const known = new Set<string>();
      const statuses = new Map<string, Set<number>>();

      const call = async (name: string, method: string, path: string, body?: unknown) => {
        const headers: Record<string, string> = { "X-API-Key": api().apiKey, "Content-Type": "application/json" };
        if (random() < 0.2) headers["Idempotency-Key"] = `k-${Math.floor(random() * 1e9)}`;
        const response = await fetch(pick(urls) + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
        const text = await response.text();
        statuses.set(name, (statuses.get(name) ?? new Set()).add(response.status));
        return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
      };
      const create = async (from: string) => {
        const options = { autoPause: random() < 0.5, timeout: random() < 0.3 ? 1 : 300 };
        const { status, body } = await call("create", "POST", "/v2/sandboxes", { templateID: from, ...options });
        if (status === 201) known.add(body.sandboxID);
      };
      const steps: readonly ((id: string) => Promise<unknown>)[] = [
        () => create("base"),
        (id) => call("pause", "POST", `/sandboxes/${id}/pause`, { memory: random() < 0.7 }),
        (id) => call("connect", "POST", `/v2/sandboxes/${id}/connect`, { timeout: 60 }),
        (id) => call("resume", "POST", `/sandboxes/${id}/resume`, { timeout: 60 }),
        (id) => call("timeout", "POST", `/sandboxes/${id}/timeout`, { timeout: pick([0, 30]) }),
        (id) => call("kill", "DELETE", `/sandboxes/${id}`),
        async (id) => {
          const { status, body } = await call("fork", "POST", `/sandboxes/${id}/fork`, { count: 2 });
          if (status === 201) for (const { sandbox } of body) if (sandbox) known.add(sandbox.sandboxID);
        },
        async (id) => {
          const { status, body } = await call("snapshot", "POST", `/sandboxes/${id}/snapshots`, {});
          if (status === 201 && random() < 0.5) await create(body.snapshotID);
        },
      ];
      const upset = () => {
        const method = pick(METHODS);
        api().node.lost.clear();
        for (const each of METHODS) Object.assign(api().node, { [each]: "ok" satisfies FakeBehaviour });
        if (random() < 0.5) Object.assign(api().node, { [method]: pick(FAILURES) });
        else api().node.lost.set(method, pick(FAILURES));
      };

      let left = STEPS;
      await Promise.all(
        Array.from({ length: CALLERS }, async () => {
          while (left-- > 0) {
            if (random() < 0.3) upset();
            const ids = [...known];
            await pick(ids.length < 3 ? steps.slice(0, 1) : steps)(pick(ids) ?? "");
          }
        }),
      );

      api().node.lost.clear();
      for (const each of METHODS) Object.assign(api().node, { [each]: "ok" });
      const { sandboxes, images } = api().store;
      const rows = async () => await Promise.all([...known].map((id) => sandboxes.find(id)));
      await waitUntil("everything has settled", async () =>
        (await rows()).every((row) => row === undefined || !PASSING_STATES.has(row.state)),
      );
      const listed = async (path: string) => (await api().call("GET", path)).body;
      for (let rows = await listed("/v2/sandboxes"); rows.length > 0; rows = await listed("/v2/sandboxes")) {
        for (const { sandboxID } of rows) expect([204, 404]).toContain((await api().call("DELETE", `/sandboxes/${sandboxID}`)).status);
      }
      for (let rows = await listed("/snapshots"); rows.length > 0; rows = await listed("/snapshots")) {
        for (const { snapshotID } of rows) {
          expect((await api().call("DELETE", `/templates/${encodeURIComponent(snapshotID)}`)).status).toBe(204);
        }
      }
      await waitUntil("the node holds nothing", () => api().node.held.size === 0 && api().node.images.size === 0, 60_000);
      await waitUntil("no image has an entry", async () => (await images.filterKnown(await imageIds())).size === 0, 60_000);
      for (const row of await rows()) {
        if (!row) continue;
        expect(row).toMatchObject({ state: "ended", endReason: expect.any(String), endActor: expect.any(String) });
        const events = await sandboxes.listEvents(row.id);
        expect(events.map(({ version }) => version)).toEqual(events.map((_event, n) => n + 1));
        for (const [n, { from, to, event }] of events.entries()) {
          if (n === 0) continue;
          expect(from).toBe(events[n - 1]?.to);
          expect(next(from ?? "ended", event as SandboxEvent)).toEqual({ kind: "move", to });
        }
      }
      const allowed: Readonly<Record<string, readonly number[]>> = {
        create: [201, 404, 500, 503],
        pause: [204, 404, 409, 500, 503],
        connect: [200, 201, 404, 409, 500, 503],
        resume: [201, 404, 409, 500, 503],
        timeout: [204, 404, 409],
        kill: [204, 404, 409, 500, 503],
        fork: [201, 404, 409, 500, 503],
        snapshot: [201, 404, 409, 500, 503],
      };
      // Whether a request succeeds is random. The test is only meaningful if most kinds of requests succeed sometimes.
      const done = [...statuses].filter(([, seen]) => [...seen].some((status) => status < 300)).map(([name]) => name);
      expect(done).toContain("create");
      expect(done.length).toBeGreaterThan(4);
      for (const [name, seen] of statuses)
        expect(
          [...seen].filter((status) => !allowed[name]?.includes(status)),
          name,
        ).toEqual([]);

      async function imageIds(): Promise<string[]> {
        const all = [...(await images.listUnsettled("creating", 999)), ...(await images.listUnsettled("deleting", 999))];
        return all.map(({ id }) => id);
      }
    });
  },
);
