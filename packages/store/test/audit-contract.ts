// What the audit log promises on both databases.

import { type BegunAuditLine, withRequest } from "@skerry/base";
import { expect, it } from "vitest";
import type { AuditFilter, NewAuditLine, Store } from "../src/index.ts";
import { addTeam, type StoreContext } from "./store-contract.ts";

const line = (changes: Partial<NewAuditLine> = {}): NewAuditLine => ({
  requestId: null,
  operation: "createSandbox",
  teamId: "t1",
  actor: "key:k1",
  userId: null,
  credentialId: "k1",
  credentialMask: "e2b_ab…cdef",
  address: "192.0.2.1",
  subjectId: null,
  outcome: "done",
  status: 201,
  reason: null,
  durationMs: 5,
  madeIds: null,
  count: 1,
  ...changes,
});

function begun(requestId: string, run = "api/1"): BegunAuditLine {
  return { requestId, run, text: () => JSON.stringify(line({ requestId })), isWritten: false, isOver: false, noteTeam: () => {} };
}

export function auditContract({ store, another }: StoreContext): void {
  const everything = async (filter: AuditFilter = {}) => (await store().audit.list(filter, { order: "asc", limit: 10_000 })).items;

  it("has the begun line of a request if and only if something that it changed is there", async () => {
    const teamId = await addTeam(store());
    const change = async (name: string, work: () => Promise<unknown>) => {
      const audit = begun(name);
      await withRequest({ requestId: name, actor: "key:k1", audit }, work).catch(() => {});
      return audit.isWritten;
    };
    const key = { id: "k9", name: "k", hash: `h-${teamId}`, mask: { length: 1, prefix: "a", suffix: "b" }, createdAt: 7, teamId };
    expect(await change("transaction", () => store().identity.addApiKey(key))).toBe(true);
    expect(await change("statement", () => store().users.rename("nobody", "x"))).toBe(true);
    expect(await change("read", () => store().keys.listOfTeam(teamId))).toBe(false);
    expect(await change("rolled back", () => store().identity.addApiKey({ ...key, hash: "other" })), "the id exists already").toBe(false);
    const broken = { ...begun("a failed line"), text: () => JSON.stringify({}), run: null as never };
    const failing = withRequest({ requestId: "r", actor: "x", audit: broken }, () =>
      store().keys.rename(teamId, "k9", { name: "new", now: 1 }),
    );
    await expect(failing).rejects.toThrow();
    expect(
      (await store().keys.listOfTeam(teamId)).map(({ name }) => name),
      "no change without its line",
    ).toEqual(["k"]);
    expect(await store().audit.runsWithBegunLines()).toEqual(["api/1"]);
    await store().audit.append([line({ requestId: "transaction" })], 10);
    expect(await store().audit.completeLost(["api/1"], 20)).toBe(1);
    expect(await store().audit.runsWithBegunLines()).toEqual([]);
    expect((await everything()).map(({ requestId, outcome, status, number, at }) => [requestId, outcome, status, number, at])).toEqual([
      ["transaction", "done", 201, 1, 10],
      ["statement", "unknown", null, 2, 20],
    ]);
  });

  it("numbers lines without a gap, with times that never fall, also of several processes", async () => {
    const stores = [store(), await another(), await another()];
    const write = async (of: Store, index: number) => {
      for (let round = 0; round < 10; round++) await of.audit.append([line(), line()], 1_000 + round * 10 + index);
    };
    await Promise.all(stores.map(write));
    const lines = await everything();
    expect(lines.map(({ number }) => number)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    expect(lines.map(({ at }) => at)).toEqual(lines.map(({ at }) => at).toSorted((a, b) => a - b));
  });

  it("lists by team, time and every field, in parts of both directions, and looks through only so many lines at a time", async () => {
    const rows = Array.from({ length: 5_200 }, (_, index) =>
      line({
        requestId: `r${index}`,
        teamId: index % 2 === 0 ? "t1" : "t2",
        ...(index === 50 ? { subjectId: "rare", outcome: "failed" } : {}),
      }),
    );
    await store().audit.append(rows.slice(0, 2_600), 1_000);
    await store().audit.append(rows.slice(2_600), 2_000);
    const walk = async (filter: AuditFilter, order: "asc" | "desc", limit: number) => {
      const found = [];
      let parts = 0;
      for (let after: number | undefined; ; parts++) {
        const { items, next } = await store().audit.list(filter, { order, limit, ...(after === undefined ? {} : { after }) });
        found.push(...items.map(({ number }) => number));
        if (next === undefined) return { found, parts };
        after = next;
      }
    };
    expect((await walk({ teamId: "t1" }, "desc", 1_000)).found).toEqual(Array.from({ length: 2_600 }, (_, index) => 5_199 - 2 * index));
    expect((await walk({}, "asc", 5_000)).found).toEqual(Array.from({ length: 5_200 }, (_, index) => index + 1));
    const rare = {
      actor: "key:k1",
      operation: "createSandbox",
      subjectId: "rare",
      requestId: "r50",
      address: "192.0.2.1",
      outcome: "failed",
    } as const;
    expect(await walk(rare, "desc", 10)).toEqual({ found: [51], parts: 1 });
    expect((await walk({ ...rare, teamId: "t1" }, "asc", 10)).found).toEqual([51]);
    for (const other of [{ teamId: "t2" }, { actor: "key:k2" }, { operation: "x" }, { address: "x" }, { from: 1_001 }, { to: 1_000 }]) {
      expect((await walk({ ...rare, ...other }, "asc", 10)).found, JSON.stringify(other)).toEqual([]);
    }
    expect((await walk({ from: 2_000 }, "asc", 5_000)).found).toEqual(Array.from({ length: 2_600 }, (_, index) => 2_601 + index));
    expect((await walk({ from: 1_000, to: 2_000 }, "desc", 5_000)).found.length).toBe(2_600);
    expect((await walk({ from: 2_001 }, "asc", 10)).found).toEqual([]);
  });

  it("keeps lines as they are, and deletes only the oldest", async () => {
    await store().audit.append([line(), line(), line()], 100);
    await store().audit.append([line(), line()], 200);
    while ((await store().audit.trim({ before: 150, max: 100 }, 2)) > 0);
    expect((await everything()).map(({ number }) => number)).toEqual([4, 5]);
    expect(await store().audit.trim({ before: 150, max: 1 })).toBe(1);
    await store().audit.append([line()], 50);
    expect((await everything()).map(({ number, at }) => [number, at])).toEqual([
      [5, 200],
      [6, 200],
    ]);
    expect(await store().audit.trim({ before: 201, max: 100 })).toBe(2);
    expect(await everything()).toEqual([]);
  });
}
