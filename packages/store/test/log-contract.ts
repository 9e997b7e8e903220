import { expect, it } from "vitest";
import type { LogLine, LogWindow } from "../src/index.ts";
import { addRunning, addTeam, BY, nextId, type StoreContext } from "./store-contract.ts";

const NOW = 1_800_000_000_000;
const FORWARD: LogWindow = { cursor: 0, direction: "forward", minLevel: "debug", limit: 100_000 };

const line = (at: number, message: string, fields: Partial<LogLine> = {}): LogLine => ({
  at,
  level: "info",
  logger: "process",
  message,
  fields: {},
  isGuest: true,
  ...fields,
});

export function logContract({ store, another }: StoreContext): void {
  const logs = () => store().sandboxLogs;
  const owner = async () => ({ sandboxId: nextId(), teamId: await addTeam(store()) });
  const texts = (lines: readonly LogLine[]) => lines.map(({ message }) => message);

  it("gives every line a time of its own, later than all before", async () => {
    const of = await owner();
    const other = (await another()).sandboxLogs;
    await logs().append(of, [line(NOW, "a"), line(NOW, "b"), line(NOW + 100, "c")]);
    await Promise.all([
      logs().append(of, [line(NOW, "d"), line(NOW + 50, "e")]),
      other.append(of, [line(NOW + 100, "d"), line(NOW + 101, "e")]),
      logs().append(of, [line(NOW - 1, "d"), line(NOW - 5, "e")]),
    ]);
    const read = await logs().read(of, FORWARD);
    const times = read.map(({ at }) => at);
    expect(times.slice(0, 3)).toEqual([NOW, NOW + 1, NOW + 100]);
    expect(new Set(times).size).toBe(9);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(texts(read)).toEqual([..."abc", ..."dedede"]);
    // As a client reads it: page by page, from a millisecond after the last line that it has.
    const paged: string[] = [];
    for (let cursor = 0, page = read; page.length > 0; cursor = (page.at(-1)?.at ?? 0) + 1) {
      page = await logs().read(of, { ...FORWARD, cursor, limit: 2 });
      paged.push(...texts(page));
    }
    expect(paged).toEqual(texts(read));
  });

  it("is read in both directions, by level and by a part of the message", async () => {
    const of = await owner();
    const levels = ["debug", "info", "warn", "error"] as const;
    await logs().append(
      of,
      levels.map((level, index) => line(NOW + index, `${level} 100%_`, { level, fields: { n: String(index) }, isGuest: false })),
    );
    const read = async (window: Partial<LogWindow>) => texts(await logs().read(of, { ...FORWARD, ...window }));
    expect(await read({ direction: "backward", cursor: NOW + 2, limit: 2 })).toEqual(["warn 100%_", "info 100%_"]);
    expect(await read({ minLevel: "warn" })).toEqual(["warn 100%_", "error 100%_"]);
    expect(await read({ search: "o 100%" })).toEqual(["info 100%_"]);
    expect(await read({ search: "%_", limit: 1 })).toEqual(["debug 100%_"]);
    expect(await read({ search: "INFO" })).toEqual([]);
    expect(await read({ search: "x' or 1=1 --" })).toEqual([]);
    expect((await logs().read(of, FORWARD))[3]).toEqual(
      line(NOW + 3, "error 100%_", { level: "error", fields: { n: "3" }, isGuest: false }),
    );
    expect(await logs().read({ ...of, teamId: await addTeam(store()) }, FORWARD)).toEqual([]);
  });

  it("takes each line of a source once, whoever delivers it, and as often as it is delivered", async () => {
    const of = await owner();
    await addRunning(store(), of.teamId, { id: of.sandboxId });
    const lines = Array.from({ length: 20 }, (_, number) => ({ ...line(NOW + number, String(number)), number }));
    const stores = [store(), await another()];
    const deliver = (from: number, to: number, source = "run1") =>
      Promise.all(stores.map(({ sandboxLogs }) => sandboxLogs.appendDelivered(of.sandboxId, { source, lines: lines.slice(from, to) })));
    await deliver(0, 10);
    await deliver(5, 20);
    await logs().appendDelivered(of.sandboxId, { source: "run1", lines: [...lines.slice(3, 9), ...lines] });
    await deliver(0, 0);
    // The store itself logs the start of the sandbox.
    const stored = async () => texts((await logs().read(of, FORWARD)).filter(({ isGuest }) => isGuest));
    expect(await stored()).toEqual(lines.map(({ message }) => message));
    await logs().appendDelivered(of.sandboxId, { source: "run2", lines: [...lines.slice(0, 2), ...lines.slice(0, 2)] });
    expect(await stored()).toHaveLength(22);
    await logs().appendDelivered(nextId(), { source: "run1", lines });
  });

  it("that is too long loses the oldest lines of the guest, and one line says how many", async () => {
    const of = await owner();
    const bounds = { maxLines: 100, maxCharacters: 100_000 };
    await logs().append(of, [line(NOW, "of the platform", { isGuest: false, logger: "platform" })], bounds);
    for (let batch = 0; batch < 30; batch += 1) {
      const some = Array.from({ length: 50 }, (_, index) => line(NOW + batch, `guest ${batch * 50 + index}`));
      await logs().append(of, some, bounds);
    }
    const read = await logs().read(of, FORWARD);
    const notes = read.filter(({ logger }) => logger === "platform");
    const guest = texts(read.filter(({ isGuest }) => isGuest));
    expect(read.length).toBeLessThanOrEqual(bounds.maxLines + 1);
    expect(texts(notes)).toEqual(["of the platform", expect.stringMatching(/^\d+ older lines were removed/)]);
    expect(Number.parseInt(notes[1]?.message ?? "", 10)).toBe(1_500 - guest.length);
    expect(guest.at(-1)).toBe("guest 1499");
    await logs().append(of, [line(NOW, "x".repeat(8_000)), ...Array.from({ length: 20 }, () => line(NOW, "y".repeat(8_000)))], bounds);
    const characters = (await logs().read(of, FORWARD)).reduce((sum, { message }) => sum + message.length, 0);
    expect(characters).toBeLessThan(101_000);
  });

  it("is forgotten by age, and by what its team has", async () => {
    const [teamId, spared] = [await addTeam(store()), await addTeam(store())];
    const [old, aging, young, kept] = [nextId(), nextId(), nextId(), nextId()];
    await logs().append({ sandboxId: old, teamId }, [line(NOW - 100, "old")]);
    await logs().append({ sandboxId: aging, teamId }, [line(NOW - 100, "old"), line(NOW, "a".repeat(100))]);
    await logs().append({ sandboxId: young, teamId }, [line(NOW + 1, "b".repeat(100))]);
    await logs().append({ sandboxId: kept, teamId: spared }, [line(NOW, "c")]);
    const left = async () => {
      const ids = { old, aging, young };
      const found = await Promise.all(
        Object.entries(ids).map(async ([name, sandboxId]) => `${name} ${(await logs().read({ sandboxId, teamId }, FORWARD)).length}`),
      );
      return found.join();
    };
    await logs().forget({ before: NOW - 50, maxTeamCharacters: 200 });
    expect(await left()).toBe("old 0,aging 1,young 1");
    for (let index = 0; index < 12; index += 1) {
      await logs().append({ sandboxId: nextId(), teamId }, [line(NOW + 2, "d".repeat(50))]);
    }
    await logs().forget({ before: 0, maxTeamCharacters: 200 });
    expect(await left()).toBe("old 0,aging 0,young 0");
    expect(await logs().read({ sandboxId: kept, teamId: spared }, FORWARD)).toHaveLength(1);
  });

  it("has a line for each change of a sandbox that callers see", async () => {
    const teamId = await addTeam(store());
    const id = await addRunning(store(), teamId);
    const move = (from: string, to: string, event: string, reason?: string) =>
      store().sandboxes.transition(id, { from, to, event, now: 40, ...BY, ...(reason ? { reason } : {}) } as never);
    await move("running", "pausing", "pause");
    await move("pausing", "paused", "paused", "memory_lost: the runtime ended");
    await move("paused", "killing", "kill", "request");
    await move("killing", "ended", "gone");
    const read = await logs().read({ sandboxId: id, teamId }, FORWARD);
    expect(read.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "info Sandbox started",
      "warn Sandbox paused without its memory: the runtime ended",
      "info Sandbox killed, as requested",
    ]);
    await store().sandboxes.forgetEnded(1_000);
    expect(await logs().read({ sandboxId: id, teamId }, FORWARD)).toHaveLength(3);
  });
}
