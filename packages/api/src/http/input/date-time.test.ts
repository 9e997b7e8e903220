import { expect, it } from "vitest";
import { parseMillisecondsFrom } from "./date-time.ts";

it.each([
  ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"],
  ["2026-01-02T03:04:05.123Z", "2026-01-02T03:04:05.123Z"],
  ["2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.124Z"],
  // Digits below a microsecond are ignored.
  ["2026-01-02T03:04:05.123000999Z", "2026-01-02T03:04:05.123Z"],
  ["2026-01-02T04:04:05.5+01:00", "2026-01-02T03:04:05.500Z"],
])("takes %s as %s", (text, expected) => {
  expect(new Date(parseMillisecondsFrom(text, "q")).toISOString()).toBe(expected);
});

it.each(["", "now", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "1700000000", "2026-01-02T03:04:05.Z"])(
  "refuses %j",
  (text) => {
    expect(() => parseMillisecondsFrom(text, "q")).toThrow(/^validation error: q must be/);
  },
);
