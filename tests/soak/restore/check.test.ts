import { expect, test } from "vitest";
import { type Check, compare, parseCheck } from "./check.ts";

const check = (overrides: Partial<Check> = {}): Check => ({
  identity: "0123456789abcdef 1",
  memory: "m".repeat(64),
  files: "f".repeat(64),
  ticks: 1,
  clockMs: 5_000,
  random: "0".repeat(32),
  mark: "",
  problems: [],
  ...overrides,
});

const compared = (now: Partial<Check>, seen = new Set<string>()) =>
  compare(check(), check({ ticks: 2, ...now }), { asked: { fromMs: 4_900, toMs: 5_100 }, seen, mark: "" });

test("a program that continued has no difference", () => {
  expect(() => compared({})).not.toThrow();
});

test.each<[string, Partial<Check>, RegExp]>([
  ["was started again", { identity: "fedcba9876543210 1" }, /^identity changed/],
  ["has other memory", { memory: "x".repeat(64) }, /^memory changed/],
  ["has other files", { files: "x".repeat(64) }, /^files changed/],
  ["was told something that was said to its sibling", { mark: "another" }, /^mark is/],
  ["stands still", { ticks: 1 }, /did not increase/],
  ["has an old clock", { clockMs: 3_000 }, /clock is wrong by -2100 ms/],
  ["has a clock from the future", { clockMs: 7_000 }, /clock is wrong by 1900 ms/],
])("a program that %s is told", (_what, now, message) => {
  expect(() => compared(now)).toThrow(message);
});

test("a random number may occur only once", () => {
  const seen = new Set<string>();
  compared({ random: "1".repeat(32) }, seen);
  expect(() => compared({ random: "1".repeat(32) }, seen)).toThrow(/twice/);
});

test("an invalid answer, or one with problems, is a difference", () => {
  expect(parseCheck(JSON.stringify(check()))).toEqual(check());
  expect(() => parseCheck("")).toThrow(/not JSON/);
  expect(() => parseCheck(JSON.stringify(check({ memory: "" })))).toThrow(/no memory/);
  expect(() => parseCheck(JSON.stringify(check({ problems: ["a thread ended", "another"] })))).toThrow("a thread ended; another");
});
