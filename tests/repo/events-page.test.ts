import { EVENT_TYPES } from "@skerry/store";
import { expect, test } from "vitest";
import { codeSpan, tableRows } from "./repository.ts";

test("docs/events.md describes every type of event as the code does", () => {
  const rows = tableRows("docs/events.md").filter(([name]) => /^`\w+\.lifecycle\.\w+`$/.test(name ?? ""));
  expect(Object.fromEntries(rows.map(([name, meaning]) => [codeSpan(name), meaning]))).toEqual(EVENT_TYPES);
});
