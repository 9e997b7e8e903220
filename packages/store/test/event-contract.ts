// What every database must do the same with events. Run on each by store.test.ts.

import { withRequest } from "@skerry/base";
import { expect, it } from "vitest";
import type { EventFilter, EventType, Store } from "../src/index.ts";
import { addRunning, addTeam, BY, newSandbox, type StoreContext } from "./store-contract.ts";

const CREATED = "sandbox.lifecycle.created";

export function eventContract({ store, another }: StoreContext): void {
  const numbered = async (filter: EventFilter, of: Store = store()) => {
    while ((await of.events.number()) > 0);
    return await of.events.list(filter, { order: "asc", limit: 10_000 });
  };
  const typesOf = async (teamId: string) => (await numbered({ teamId })).map(({ type }) => type);

  it("tells of each change of a sandbox that callers can see, once", async () => {
    const teamId = await addTeam(store());
    const { sandboxes } = store();
    const id = await addRunning(store(), teamId, {
      startedAt: 2_000,
      endAt: 9_000,
      metadata: { a: "b" },
      options: { denyOut: ["10.0.0.0/8"] },
    });
    const move = (from: string, to: string, extra: object = {}) =>
      sandboxes.transition(id, { from, to, event: "x", actor: "key:k", now: 5_000, ...extra } as never);
    await sandboxes.setEnd(id, { endAt: 8_000, now: 3_000, onlyLater: true });
    await sandboxes.setEnd(id, { endAt: 12_000, now: 3_000, onlyLater: true });
    await move("running", "pausing", { reason: "request" });
    await move("pausing", "running");
    await move("running", "pausing", { reason: "request" });
    await move("pausing", "paused", { reason: "memory_lost: x" });
    await move("paused", "resuming");
    await move("resuming", "paused");
    await move("paused", "resuming");
    await move("resuming", "running", { set: { startedAt: 6_000 } });
    await move("running", "killing", { reason: "request", now: 6_500 });
    await move("killing", "ended");
    const never = newSandbox(teamId);
    await sandboxes.insert(never, BY);
    await sandboxes.transition(never.id, {
      from: "starting",
      to: "killing",
      event: "x",
      actor: "platform",
      reason: "create_failed",
      now: 1,
    });
    const events = await numbered({ teamId });
    expect(events.map(({ type }) => type.split(".")[2])).toEqual(["created", "updated", "paused", "resumed", "killed"]);
    expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(events.map((event) => event.id)).size).toBe(5);
    const sandbox = { metadata: { a: "b" }, cpuCount: 2, memoryMb: 512, startedAt: 2_000, options: { denyOut: ["10.0.0.0/8"] } };
    expect(events[0]).toMatchObject({ teamId, subjectId: id, at: 2_000, facts: { sandbox: { ...sandbox, endAt: 9_000 } } });
    expect(events[1]).toMatchObject({ actor: "platform", facts: { sandbox: { endAt: 12_000 } } });
    expect(events[2]).toMatchObject({ actor: "key:k", reason: "memory_lost: x", facts: { sandbox: { ranMs: 3_000 } } });
    expect(events[4]).toMatchObject({ reason: "request", facts: { sandbox: { startedAt: 6_000, ranMs: 500, killReason: "request" } } });
  });

  it("tells of sandboxes that expire together, each once", async () => {
    const teamId = await addTeam(store());
    const ids = [await addRunning(store(), teamId, { endAt: 10 }), await addRunning(store(), teamId, { endAt: 20 })];
    const expiry = { to: "killing", event: "expire", actor: "platform", owner: "o", now: 10_000, limit: 10 } as const;
    await Promise.all([store().sandboxes.expire(expiry), store().sandboxes.expire(expiry)]);
    const killed = await numbered({ teamId, types: ["sandbox.lifecycle.killed"] });
    expect(killed.map(({ subjectId }) => subjectId).toSorted()).toEqual(ids.toSorted());
    expect(killed[0]).toMatchObject({ reason: "timeout", actor: "platform", facts: { sandbox: { killReason: "timeout" } } });
  });

  it("names the request and its caller", async () => {
    const teamId = await addTeam(store());
    const key = { id: "k1", name: "ci", hash: `h-${teamId}`, mask: { length: 1, prefix: "a", suffix: "b" }, createdAt: 7 };
    await withRequest({ requestId: "r1", actor: "user:u1" }, () => store().identity.addApiKey({ ...key, teamId }));
    await store().identity.addApiKey({ ...key, id: "again", teamId });
    await store().identity.addApiKey({ ...key, id: "seeded", hash: `s-${teamId}`, teamId, isSeeded: true });
    await store().keys.rename(teamId, "k1", { name: "new", now: 8 });
    await store().keys.removeKey(teamId, "k1", 9);
    const events = await numbered({ teamId });
    expect(events.map(({ type, actor, requestId, at, facts }) => [type, actor, requestId, at, facts.name])).toEqual([
      ["key.lifecycle.created", "user:u1", "r1", 7, "ci"],
      ["key.lifecycle.updated", "platform", undefined, 8, "new"],
      ["key.lifecycle.deleted", "platform", undefined, 9, undefined],
    ]);
  });

  it("loses and invents nothing: a change that is rolled back has no event", async () => {
    const teamId = await addTeam(store());
    const { sandboxes } = store();
    await addRunning(store(), teamId);
    const refused = sandboxes.insert(newSandbox(teamId), { ...BY, limits: { sandboxes: 1, cpu: null, memoryMb: null, diskMb: null } });
    await expect(refused).rejects.toMatchObject({ code: "limit_reached" });
    expect(await typesOf(teamId)).toEqual([CREATED]);
  });

  it("gives numbers without a gap and in the order of each sandbox's changes, with writers and readers on several connections", async () => {
    const teamId = await addTeam(store());
    const stores = [store(), await another(), await another()];
    const ids = await Promise.all(Array.from({ length: 6 }, () => addRunning(store(), teamId, { endAt: 1_000_000 })));
    let writing = true;
    const read: { sequence: number; subjectId: string; end: number }[] = [];
    const follow = async (of: Store) => {
      for (let after = 0, last = false; ; ) {
        await of.events.number();
        const page = await of.events.list({ teamId }, { order: "asc", limit: 50, after: { place: after } });
        for (const event of page) read.push({ ...event, end: event.facts.sandbox?.endAt ?? 0 });
        after = page.at(-1)?.sequence ?? after;
        if (last && page.length === 0) return;
        last = !writing;
      }
    };
    const following = follow(stores[2] as Store);
    const write = async (of: Store, offset: number) => {
      for (let round = 0; round < 15; round++) {
        const end = 2_000_000 + round * 2 + offset;
        await Promise.all(ids.map((id) => of.sandboxes.setEnd(id, { endAt: end, now: 5, onlyLater: true })));
        await of.events.number();
      }
    };
    await Promise.all([write(stores[0] as Store, 0), write(stores[1] as Store, 1)]);
    writing = false;
    await following;
    while ((await store().events.number()) > 0);
    const all = await store().events.list({ teamId }, { order: "asc", limit: 10_000 });
    // The reader, which never looked back, saw every event once.
    expect(read.map(({ sequence }) => sequence)).toEqual(all.map(({ sequence }) => sequence));
    expect(read.map(({ sequence }) => sequence)).toEqual(read.map((_, index) => index + 1));
    for (const id of ids) {
      const ends = read.filter(({ subjectId }) => subjectId === id).map(({ end }) => end);
      expect(ends.length).toBeGreaterThan(15);
      expect(ends, "each change was later than the one before").toEqual(ends.toSorted((a, b) => a - b));
    }
  });

  it("lists by type, subject and time, in pages of both directions, and only of one team", async () => {
    const [teamId, other] = [await addTeam(store()), await addTeam(store())];
    const ids: string[] = [];
    for (let at = 1; at <= 9; at++)
      ids.push(await addRunning(store(), at % 3 === 0 ? other : teamId, { startedAt: at * 10, endAt: 1_000 + at }));
    await store().sandboxes.setEnd(ids[0] ?? "", { endAt: 5_000, now: 35, onlyLater: true });
    while ((await store().events.number()) > 0);
    const walk = async (filter: EventFilter, order: "asc" | "desc") => {
      const found = [];
      const byTime = filter.subjectId === undefined && (filter.from !== undefined || filter.to !== undefined);
      for (let after: { place: number; at?: number } | undefined; ; ) {
        const page = await store().events.list(filter, { order, limit: 2, ...(after ? { after } : {}) });
        found.push(...page);
        const last = page.at(-1);
        if (!last) return found;
        const place = filter.teamId === undefined ? last.number : last.sequence;
        after = byTime ? { place, at: last.at } : { place };
      }
    };
    const times = async (filter: EventFilter, order: "asc" | "desc" = "asc") => (await walk(filter, order)).map(({ at }) => at);
    expect(await times({ teamId })).toEqual([10, 20, 40, 50, 70, 80, 35]);
    expect(await times({ teamId }, "desc")).toEqual([35, 80, 70, 50, 40, 20, 10]);
    expect(await times({ teamId, from: 20, to: 70 })).toEqual([20, 35, 40, 50]);
    expect(await times({ teamId, from: 20, to: 70 }, "desc")).toEqual([50, 40, 35, 20]);
    expect(await times({ teamId, subjectId: ids[0] ?? "" })).toEqual([10, 35]);
    expect(await times({ teamId, subjectId: ids[0] ?? "", from: 11 })).toEqual([35]);
    expect(await times({ teamId, subjectId: ids[2] ?? "" })).toEqual([]);
    expect(await times({ teamId, types: [CREATED] })).toEqual([10, 20, 40, 50, 70, 80]);
    const two: EventType[] = [CREATED, "sandbox.lifecycle.updated"];
    expect(await times({ teamId, types: two }, "desc")).toEqual([35, 80, 70, 50, 40, 20, 10]);
    expect(await times({ teamId, types: ["sandbox.lifecycle.killed"] })).toEqual([]);
    expect((await times({})).filter((at) => at <= 90)).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 35]);
    expect(await times({ teamId: other })).toEqual([30, 60, 90]);
    const last = await store().events.last();
    expect(new Set(await store().events.teamsSince(last - 2))).toEqual(new Set([teamId, other]));
    expect(await store().events.teamsSince(last)).toEqual([]);
  });

  it("deletes what is too old or too many, of each team by itself, and never gives a number again", async () => {
    const [busy, quiet] = [await addTeam(store()), await addTeam(store())];
    for (let at = 1; at <= 8; at++) await addRunning(store(), busy, { startedAt: at * 100, endAt: 10_000 });
    await addRunning(store(), quiet, { startedAt: 100, endAt: 10_000 });
    // A clock that was wrong for a moment protects only its own event.
    await addRunning(store(), quiet, { startedAt: 9_999_999, endAt: 10_000 });
    await numbered({ teamId: busy });
    while ((await store().events.trim({ before: 150, maxOfTeam: 3 }, 2)) > 0);
    const left = async (teamId: string) => (await numbered({ teamId })).map(({ sequence }) => sequence);
    expect(await left(busy)).toEqual([6, 7, 8]);
    expect(await left(quiet)).toEqual([2]);
    expect(await store().events.oldest(busy)).toBe(6);
    await store().events.trim({ before: 10_000_000, maxOfTeam: 3 });
    expect(await left(busy)).toEqual([]);
    expect(await store().events.oldest(busy)).toBeUndefined();
    await addRunning(store(), busy);
    expect(await left(busy)).toEqual([9]);
  });
}
