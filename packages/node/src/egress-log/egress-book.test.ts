import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { EgressRecord } from "../egress/egress-record.ts";
import { EgressBook } from "./egress-book.ts";

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "skerry-egress-"));
  file = join(dir, "egress.json");
});
afterEach(() => rmSync(dir, { recursive: true }));

const record = (name: string, more: Partial<EgressRecord> = {}): EgressRecord => ({
  timeMs: 1,
  protocol: "tls",
  name,
  address: "192.0.2.1",
  port: 443,
  sentBytes: 10,
  receivedBytes: 20,
  verdict: "allowed",
  rule: "*",
  ...more,
});
const NONE = { source: "", number: 0 };
const said = (batch: ReturnType<EgressBook["read"]>) => batch?.lines.map(({ sandboxId, name, count }) => [sandboxId, name, count]);

it("says whose a line is, also after the end of the sandbox, and drops what belongs to nobody", () => {
  const book = new EgressBook(file);
  book.record("10.0.0.1", record("nobody"));
  book.arrive("10.0.0.1", "");
  book.record("10.0.0.1", record("ready"));
  book.own("10.0.0.1", "one");
  book.record("10.0.0.1", record("a"));
  book.own("10.0.0.1", "");
  book.record("10.0.0.1", record("b"));
  book.arrive("10.0.0.1", "two");
  book.record("10.0.0.1", record("c"));
  const batch = book.read(NONE);
  expect(said(batch)).toEqual([
    ["one", "a", 1],
    ["one", "b", 1],
    ["two", "c", 1],
  ]);
  expect(batch?.counts).toEqual([
    { sandboxId: "one", sentBytes: 0, receivedBytes: 0, connections: 2, refused: 0 },
    { sandboxId: "two", sentBytes: 0, receivedBytes: 0, connections: 1, refused: 0 },
  ]);
  expect(book.read(batch ?? NONE)).toBeUndefined();
});

it("repeats a batch until it is stored, and keeps what is left for the next process", () => {
  const first = new EgressBook(file);
  first.arrive("10.0.0.1", "one");
  first.record("10.0.0.1", record("a"));
  const batch = first.read(NONE);
  expect(first.read({ source: "another", number: 1 })).toEqual(batch);
  first.record("10.0.0.1", record("b"));
  first.close();
  const second = new EgressBook(file);
  second.arrive("10.0.0.1", "one");
  second.record("10.0.0.1", record("c"));
  expect(second.read(NONE)).toEqual(batch);
  const next = second.read(batch ?? NONE);
  expect(said(next)).toEqual([["one", "b", 1]]);
  expect(next?.source).toBe(batch?.source);
  const last = second.read(next ?? NONE);
  expect(said(last)).toEqual([["one", "c", 1]]);
  expect(last?.source).not.toBe(batch?.source);
  // It is all delivered: after a crash nothing comes again.
  expect(new EgressBook(file).read(NONE)).toBeUndefined();
  writeFileSync(file, "[{");
  expect(new EgressBook(file).read(NONE)).toBeUndefined();
});

it("counts the same attempt, and what a flood adds, and leaves other sandboxes theirs", () => {
  const book = new EgressBook(file);
  for (const [number, id] of ["one", "two"].entries()) book.arrive(`10.0.0.${number}`, id);
  const now = Date.now();
  const refused = { verdict: "refused", rule: "closed", sentBytes: 0, receivedBytes: 0 } as const;
  for (let time = 0; time < 1_000; time += 1) book.record("10.0.0.0", record("same", refused), now);
  for (let port = 0; port < 10_000; port += 1) book.record("10.0.0.0", record("", { ...refused, port }), now);
  for (let time = 0; time < 1_000; time += 1) book.record("10.0.0.0", record("open"), now);
  book.record("10.0.0.1", record("other"), now);
  const { lines = [], counts } = book.read(NONE) ?? {};
  const ofOne = lines.filter(({ sandboxId }) => sandboxId === "one");
  expect(ofOne).toHaveLength(302);
  expect(ofOne[0]).toMatchObject({ name: "same", count: 1_000 });
  expect(ofOne.slice(-2)).toMatchObject([
    { rule: "omitted", verdict: "refused", count: 10_000 - 299 },
    { rule: "omitted", verdict: "allowed", count: 1_000, sentBytes: 10_000, receivedBytes: 20_000 },
  ]);
  expect(lines.filter(({ sandboxId }) => sandboxId === "two")).toHaveLength(1);
  expect(counts?.[0]).toMatchObject({ sandboxId: "one", connections: 1_000, refused: 11_000 });
});
