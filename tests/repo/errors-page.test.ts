import { Code } from "@connectrpc/connect";
import { ERROR_CATALOG, type ErrorEntry, NODE_ERRORS } from "@skerry/wire";
import { expect, test } from "vitest";
import { codeSpan, tableRows } from "./repository.ts";

test("docs/errors.md lists exactly the errors of the catalog, with their properties", () => {
  const rows = tableRows("docs/errors.md").filter(([code, status]) => /^`[a-z_]+`$/.test(code ?? "") && /^\d+$/.test(status ?? ""));
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

test("docs/errors.md lists exactly the errors of a node, with their RPC codes", () => {
  const documented = tableRows("docs/errors.md").filter(([, rpcCode]) => /^[A-Z]+(_[A-Z]+)*$/.test(rpcCode ?? ""));
  const rpcName = (code: number) => (Code[code] ?? "").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
  const errors = Object.entries(NODE_ERRORS).map(([code, rpcCode]) => [code, rpcName(rpcCode)]);
  expect(documented.map(([code, rpcCode]) => [codeSpan(code), rpcCode])).toEqual(errors);
});
