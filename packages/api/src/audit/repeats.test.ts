import type { NewAuditLine } from "@skerry/store";
import { expect, it } from "vitest";
import { Repeats } from "./repeats.ts";

const MINUTE_MS = 60_000;

const refusal = (changes: Partial<NewAuditLine> = {}): NewAuditLine => ({
  requestId: "r",
  operation: "createSandbox",
  teamId: null,
  actor: "anyone",
  userId: null,
  credentialId: null,
  credentialMask: null,
  address: "192.0.2.1",
  subjectId: null,
  outcome: "refused",
  status: 401,
  reason: "unauthenticated",
  durationMs: 3,
  madeIds: null,
  count: 1,
  ...changes,
});

it("admits the first of its kind, and counts the others in one line a minute later", () => {
  const repeats = new Repeats();
  expect(repeats.admit(refusal(), 0)).toBe(true);
  for (let count = 0; count < 1000; count++) expect(repeats.admit(refusal({ requestId: String(count) }), 1)).toBe(false);
  expect(repeats.admit(refusal({ address: "192.0.2.2" }), 2)).toBe(true);
  expect(repeats.take(MINUTE_MS - 1)).toEqual([]);
  expect(repeats.take(MINUTE_MS + 2)).toEqual([{ ...refusal(), requestId: null, durationMs: null, count: 1000 }]);
  expect(repeats.take(10 * MINUTE_MS)).toEqual([]);
  expect(repeats.admit(refusal(), MINUTE_MS + 3)).toBe(true);
});

it("admits so many different ones of each caller, and counts those beyond in one line of the caller", () => {
  const repeats = new Repeats();
  const admitted = (changes: Partial<NewAuditLine>) =>
    Array.from({ length: 500 }, (_, index) => repeats.admit(refusal({ subjectId: String(index), ...changes }), 0)).filter(Boolean).length;
  expect(admitted({})).toBe(60);
  expect(admitted({ actor: "key:a", teamId: "t" }), "another caller has lines of its own").toBe(60);
  const counted = repeats.take(MINUTE_MS);
  expect(counted.map(({ actor, teamId, count, operation, requestId }) => [actor, teamId, count, operation, requestId])).toEqual([
    ["anyone", null, 440, null, null],
    ["key:a", "t", 440, null, null],
  ]);
  expect(admitted({}), "the next minute").toBe(60);
});
