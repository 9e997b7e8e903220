import { ERROR_CATALOG, type ErrorEntry } from "@skerry/wire";
import { expect, test } from "vitest";
import { codeSpan, tableRows } from "./repository.ts";

test("docs/errors.md lists exactly the errors of the catalog, with their properties", () => {
  const rows = tableRows("docs/errors.md").filter(([code]) => /^`[a-z_]+`$/.test(code ?? ""));
  const documented = rows.map(([code, status, fault, retryable]) => [codeSpan(code), Number(status), fault, retryable]);
  const catalog = Object.entries<ErrorEntry>(ERROR_CATALOG).map(([code, entry]) => [
    code,
    entry.status,
    entry.fault,
    entry.retryable ? "yes" : "no",
  ]);
  expect(documented).toEqual(catalog);
  for (const row of rows) expect(row[4], `${row[0]} has a meaning`).toMatch(/\w{3}/);
});
