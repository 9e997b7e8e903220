import { expect, it } from "vitest";
import type { EgressBatch, EgressLine } from "../src/index.ts";
import { addRunning, addTeam, nextId, type StoreContext } from "./store-contract.ts";

const STEP_MS = 300_000;
const NOW = 1_800_000_000_000 - (1_800_000_000_000 % STEP_MS);

export function egressContract({ store, another }: StoreContext): void {
  const egress = () => store().egress;
  const line = (sandboxId: string, name: string, fields: Partial<EgressLine> = {}): EgressLine => ({
    sandboxId,
    at: NOW,
    protocol: "tls",
    name,
    address: "192.0.2.1",
    port: 443,
    sentBytes: 2 ** 33,
    receivedBytes: 1,
    isAllowed: true,
    rule: "*.example",
    count: 1,
    ...fields,
  });
  const batch = (number: number, fields: Partial<EgressBatch> = {}): EgressBatch => ({
    source: "one",
    number,
    lines: [],
    counts: [],
    ...fields,
  });
  const counts = (sandboxId: string) => ({ sandboxId, sentBytes: 2 ** 40, receivedBytes: 5, connections: 2, refused: 1 });
  const ALL = { after: 0, limit: 100_000 };
  const names = async (owner: { sandboxId: string; teamId: string }, window = {}) =>
    (await egress().read(owner, { ...ALL, ...window })).map(({ name }) => name);
  const owner = async () => {
    const teamId = await addTeam(store());
    return { teamId, sandboxId: await addRunning(store(), teamId) };
  };

  it("stores each batch of a source once, whoever delivers it, and of known sandboxes alone", async () => {
    const [one, two] = [await owner(), await owner()];
    const other = (await another()).egress;
    const source = nextId();
    const first = batch(1, {
      source,
      lines: [line(one.sandboxId, "a"), line(two.sandboxId, "b"), line(nextId(), "?")],
      counts: [counts(one.sandboxId)],
    });
    const second = batch(2, { source, lines: [line(one.sandboxId, "c")], counts: [counts(one.sandboxId), counts(two.sandboxId)] });
    await Promise.all([egress().add(first, NOW), other.add(first, NOW), egress().add(first, NOW)]);
    await Promise.all([other.add(second, NOW + STEP_MS), egress().add(first, NOW)]);
    await egress().add(batch(1, { source: `${source}-next`, lines: [line(one.sandboxId, "d")] }), NOW + STEP_MS);
    expect(await names(one)).toEqual(["a", "c", "d"]);
    expect((await egress().read(one, ALL))[0]).toEqual({ ...line(one.sandboxId, "a"), position: 1 });
    expect(await names(two)).toEqual(["b"]);
    expect(await names({ ...one, teamId: two.teamId })).toEqual([]);
    expect(await egress().totals(one)).toEqual({ sentBytes: 2 ** 41, receivedBytes: 10, connections: 4, refused: 2 });
    expect(await egress().totals({ ...one, teamId: two.teamId })).toEqual({ sentBytes: 0, receivedBytes: 0, connections: 0, refused: 0 });
    const { sandboxId: _id, ...once } = counts(one.sandboxId);
    const range = { start: NOW + 1, end: NOW + STEP_MS };
    expect(await egress().ofTeam(one.teamId, range)).toEqual([
      { at: NOW, ...once },
      { at: NOW + STEP_MS, ...once },
    ]);
    expect(await egress().ofTeam(two.teamId, range)).toEqual([{ at: NOW + STEP_MS, ...once }]);
  });

  it("is read from a position on, by time and by verdict", async () => {
    const of = await owner();
    const { sandboxId } = of;
    const lines = [
      line(sandboxId, "a", { at: NOW - 2 }),
      line(sandboxId, "b", { at: NOW - 1, isAllowed: false, rule: "no_name", count: 7 }),
      line(sandboxId, "c"),
    ];
    await egress().add(batch(1, { source: nextId(), lines }), NOW);
    expect(await names(of, { after: 1 })).toEqual(["b", "c"]);
    expect(await names(of, { after: 1, limit: 1 })).toEqual(["b"]);
    expect(await names(of, { start: NOW - 1, end: NOW })).toEqual(["b"]);
    expect(await names(of, { isAllowed: false })).toEqual(["b"]);
    expect(await names(of, { isAllowed: true })).toEqual(["a", "c"]);
  });

  it("keeps the newest lines of a log that is too long, and neither old logs nor too many of a team", async () => {
    const [one, two, three] = [await owner(), await owner(), await owner()];
    const source = nextId();
    for (let number = 0; number < 10; number += 1) {
      await egress().add(batch(number, { source, lines: [line(one.sandboxId, String(number))] }), NOW, { maxLines: 8 });
    }
    expect(await names(one)).toEqual(["3", "4", "5", "6", "7", "8", "9"]);
    const silent = { ...two, sandboxId: await addRunning(store(), two.teamId) };
    await egress().add(batch(20, { source, lines: [line(silent.sandboxId, "a"), line(silent.sandboxId, "b")] }), NOW - 2);
    await egress().add(batch(21, { source, lines: [line(two.sandboxId, "c"), line(two.sandboxId, "d")] }), NOW - 1);
    await egress().add(batch(22, { source, lines: [line(three.sandboxId, "e")], counts: [counts(three.sandboxId)] }), NOW - STEP_MS);
    await egress().forget({ linesBefore: NOW - STEP_MS + 1, countsBefore: NOW - STEP_MS + 1, maxTeamLines: 1_000_000 });
    expect(await names(three)).toEqual([]);
    expect(await egress().ofTeam(three.teamId, { start: 0, end: NOW })).toEqual([]);
    await egress().forget({ linesBefore: 0, countsBefore: 0, maxTeamLines: 7 });
    expect([await names(one), await names(silent), await names(two)]).toEqual([
      ["3", "4", "5", "6", "7", "8", "9"],
      ["a", "b"],
      ["c", "d"],
    ]);
    const rows = Array.from({ length: 7 }, (_, number) => line(two.sandboxId, String(number)));
    await egress().add(batch(23, { source, lines: rows }), NOW);
    await egress().forget({ linesBefore: 0, countsBefore: 0, maxTeamLines: 9 });
    expect([await names(silent), (await names(two)).length]).toEqual([[], 9]);
  });
}
