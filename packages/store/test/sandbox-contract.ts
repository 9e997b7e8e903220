import type { SandboxOptions } from "@skerry/wire/node";
import { expect, it } from "vitest";
import { addRunning, addTeam, BY, newSandbox, type StoreContext } from "./store-contract.ts";

/** What the row of a new sandbox of `newSandbox` has besides. */
export const NOT_STARTED = {
  state: "starting",
  stateChangedAt: 1_000,
  runtime: null,
  agentVersion: null,
  startedAt: null,
  endAt: null,
  endedAt: null,
  endReason: null,
  endActor: null,
  version: 1,
  imageId: null,
  imageHasMemory: null,
  agentUnresponsive: null,
  pausedAt: null,
  expireNotBefore: null,
  pauseReason: null,
  keepUntil: null,
  resumeMs: null,
  suspendedBy: null,
} as const;

export function sandboxContract({ store, another }: StoreContext): void {
  it("keeps every field of a sandbox", async () => {
    const teamId = await addTeam(store());
    const metadata = { "schlüssel 🔑": 'a"b\\c\nd\u0001=&%', "": "empty name", big: "x".repeat(100_000) };
    const sandbox = newSandbox(teamId, { metadata, options: { allowInternetAccess: false }, alias: null, createdAt: 1_700_000_000_123 });
    await store().sandboxes.insert(sandbox, BY);
    expect(await store().sandboxes.find(sandbox.id)).toEqual({ ...sandbox, ...NOT_STARTED, stateChangedAt: 1_700_000_000_123 });
    await expect(store().sandboxes.insert(sandbox, BY)).rejects.toThrow();
  });

  it("keeps options of a later version, and names the sandbox whose options are not valid", async () => {
    const teamId = await addTeam(store());
    const later = { allowInternetAccess: false, ofALaterVersion: ["x"] } as SandboxOptions;
    const damaged = { allowInternetAccess: "no" } as unknown as SandboxOptions;
    const [kept, refused] = [newSandbox(teamId, { options: later }), newSandbox(teamId, { options: damaged })];
    for (const sandbox of [kept, refused]) await store().sandboxes.insert(sandbox, BY);
    expect((await store().sandboxes.find(kept.id))?.options).toEqual(later);
    const failure = { code: "store_damaged", message: expect.stringContaining(refused.id) };
    await expect(store().sandboxes.find(refused.id)).rejects.toMatchObject(failure);
  });

  it("lets one of many concurrent changes of a state win", async () => {
    const id = await addRunning(store(), await addTeam(store()));
    const second = await another();
    const change = { from: "running", to: "killing", event: "kill", now: 3, reason: "request", ...BY } as const;
    const won = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? store() : second).sandboxes.transition(id, change)));
    expect(won.filter(Boolean)).toHaveLength(1);
    await store().sandboxes.transition(id, { from: "killing", to: "ended", event: "gone", actor: "platform", now: 8 });
    const ended = { state: "ended", endReason: "request", endActor: BY.actor, endedAt: 8, stateChangedAt: 8, version: 4 };
    expect(await store().sandboxes.find(id)).toMatchObject(ended);
    expect((await store().sandboxes.listEvents(id)).map(({ from, to, event, reason, actor }) => [from, to, event, reason, actor])).toEqual([
      [null, "starting", "create", null, BY.actor],
      ["starting", "running", "started", null, BY.actor],
      ["running", "killing", "kill", "request", BY.actor],
      ["killing", "ended", "gone", null, "platform"],
    ]);
  });

  it("moves the end of sandboxes that run, and of no others", async () => {
    const id = await addRunning(store(), await addTeam(store()), { endAt: 1_000 });
    const end = (endAt: number, now: number, onlyLater: boolean) => store().sandboxes.setEnd(id, { endAt, now, onlyLater });
    expect(await end(900, 500, true)).toBe(false);
    expect(await end(1_100, 500, true)).toBe(true);
    expect(await end(700, 500, false)).toBe(true);
    expect((await store().sandboxes.find(id))?.endAt).toBe(700);
    // Its time is over: nothing brings it back.
    expect(await end(2_000, 700, false)).toBe(false);
    expect(await end(2_000, 701, true)).toBe(false);
  });

  it("takes what has expired once, whoever asks", async () => {
    const teamId = await addTeam(store());
    const due = await Promise.all(Array.from({ length: 30 }, (_, i) => addRunning(store(), teamId, { endAt: 100 + i })));
    const later = await addRunning(store(), teamId, { endAt: 131 });
    const second = await another();
    const change = { to: "killing", event: "expire", actor: "platform", owner: "api1", now: 130, limit: 20 } as const;
    const taken = await Promise.all([0, 1, 2, 3].map((i) => (i % 2 ? store() : second).sandboxes.expire(change)));
    const rest = await store().sandboxes.expire(change);
    expect(
      [...taken, rest]
        .flat()
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(due.toSorted());
    expect((await store().sandboxes.find(later))?.state).toBe("running");
    expect(await store().sandboxes.find(due[0] ?? "")).toMatchObject({ state: "killing", endReason: "timeout" });
  });

  it("lists in both orders, page by page, with ties", async () => {
    const teamId = await addTeam(store());
    const starts = [10, 20, 20, 20, 30];
    const ids: string[] = [];
    for (const startedAt of starts) ids.push(await addRunning(store(), teamId, { startedAt }));
    await addRunning(store(), await addTeam(store()), { startedAt: 20 });
    const [a, b, c, d, e] = ids;
    for (const [order, expected] of [
      ["desc", [e, b, c, d, a]],
      ["asc", [a, d, c, b, e]],
    ] as const) {
      const seen: string[] = [];
      let after: { startedAt: number; id: string } | undefined;
      for (;;) {
        const rows = await store().sandboxes.list({ teamId, listed: "running" }, { order, limit: 2, ...(after ? { after } : {}) });
        seen.push(...rows.map(({ id }) => id));
        const last = rows.at(-1);
        if (!last || rows.length < 2) break;
        after = { startedAt: last.startedAt ?? 0, id: last.id };
      }
      expect(seen).toEqual(expected);
    }
  });

  it("filters by exact metadata, template and start", async () => {
    const teamId = await addTeam(store());
    const odd = { 'a"b\\c\n.$[0]': "x%&='\u0001🎉", n: "1" };
    const id = await addRunning(store(), teamId, { metadata: odd, startedAt: 50 });
    await addRunning(store(), teamId, { metadata: { n: "10" }, startedAt: 49, templateId: "other" });
    await addRunning(store(), teamId, { startedAt: 48 });
    const count = (filter: object) => store().sandboxes.count({ teamId, listed: "running", ...filter });
    const list = async (filter: object) =>
      (await store().sandboxes.list({ teamId, ...filter }, { order: "desc", limit: 9 })).map((row) => row.id);
    expect(await list({ metadata: odd })).toEqual([id]);
    expect(await list({ metadata: { n: "1" } })).toEqual([id]);
    expect(await count({ metadata: { n: "1", m: "1" } })).toBe(0);
    expect(await count({ metadata: { n: "%" } })).toBe(0);
    expect(await count({ metadata: {} })).toBe(3);
    expect(await count({ templateId: "other" })).toBe(1);
    expect(await count({ startedFrom: 49 })).toBe(2);
  });

  it("routes to running sandboxes until their end", async () => {
    const teamId = await addTeam(store());
    const id = await addRunning(store(), teamId, { endAt: 100 });
    expect(await store().sandboxes.findRoute(id, 99)).toEqual({
      teamId,
      nodeId: "node1",
      nodeUrl: "http://node1",
      startedAt: 2_000,
      options: expect.any(Object),
    });
    expect(await store().sandboxes.findRoute(id, 100)).toBeUndefined();
    await store().sandboxes.transition(id, { from: "running", to: "killing", event: "kill", now: 5, ...BY });
    expect(await store().sandboxes.findRoute(id, 50)).toBeUndefined();
  });

  it("lists what has a route, the latest start first", async () => {
    const teamId = await addTeam(store());
    const [first, second, third] = [
      await addRunning(store(), teamId, { startedAt: 10, endAt: 100 }),
      await addRunning(store(), teamId, { startedAt: 20, endAt: 200 }),
      await addRunning(store(), teamId, { startedAt: 15, endAt: 300 }),
    ];
    expect(await store().sandboxes.listRoutedIds(99, 9)).toEqual([second, third, first]);
    expect(await store().sandboxes.listRoutedIds(99, 2)).toEqual([second, third]);
    expect(await store().sandboxes.listRoutedIds(100, 9)).toEqual([second, third]);
    await store().sandboxes.transition(third, { from: "running", to: "snapshotting", event: "snapshot", now: 5, ...BY });
    await store().sandboxes.transition(second, { from: "running", to: "pausing", event: "pause", now: 5, ...BY });
    expect(await store().sandboxes.listRoutedIds(0, 9)).toEqual([third, first]);
  });

  it("tells what is unsettled, live, on a node, and forgotten", async () => {
    const teamId = await addTeam(store());
    const starting = newSandbox(teamId, { createdAt: 10, nodeId: "node2" });
    await store().sandboxes.insert(starting, BY);
    const running = await addRunning(store(), teamId);
    const ended = await addRunning(store(), teamId);
    await store().sandboxes.transition(ended, { from: "running", to: "ended", event: "gone", now: 50, reason: "node_lost", ...BY });
    const unsettled = async (before: number) => (await store().sandboxes.listUnsettled("starting", before, 9)).map(({ id }) => id);
    expect(await unsettled(9)).toEqual([]);
    expect(await unsettled(10)).toEqual([starting.id]);
    expect(await store().sandboxes.listUnsettled("starting", 10, 9)).toEqual([
      expect.objectContaining({ id: starting.id, state: "starting", nodeId: "node2", owner: starting.owner, createdAt: 10 }),
    ]);
    const live = await store().sandboxes.filterLive([starting.id, running, ended, "unknown"]);
    expect([...live].toSorted()).toEqual([starting.id, running].toSorted());
    expect((await store().sandboxes.listOnNode("node1", ["running"])).map(({ id }) => id)).toEqual([running]);
    expect(await store().sandboxes.countByNode()).toEqual(
      new Map([
        ["node1", 1],
        ["node2", 1],
      ]),
    );
    expect(await store().sandboxes.forgetEnded(50)).toBe(0);
    expect(await store().sandboxes.forgetEnded(51)).toBe(1);
    expect(await store().sandboxes.find(ended)).toBeUndefined();
    expect(await store().sandboxes.listEvents(ended)).toEqual([]);
  });
}
