import { expect, test } from "vitest";
import { parseServeConfig } from "../../services/skerry/config.ts";
import { SETTINGS } from "../../services/skerry/setting-names.ts";
import { codeSpan, tableRows } from "./repository.ts";

const rows = tableRows("docs/config.md").filter(([name]) => /^`SKERRY_[A-Z0-9_]+`$/.test(name ?? ""));

test("docs/config.md lists exactly the settings that are read", () => {
  const documented = rows.map(([name]) => codeSpan(name)?.slice("SKERRY_".length) ?? "");
  expect(documented.toSorted()).toEqual([...SETTINGS].sort());
});

test.each(rows.filter(([, fallback]) => codeSpan(fallback) !== undefined).map(([name, fallback]) => [codeSpan(name), codeSpan(fallback)]))(
  "%s: setting its default %s changes nothing",
  (name, fallback) => {
    expect(parseServeConfig({ [name ?? ""]: fallback })).toEqual(parseServeConfig({}));
  },
);

test("a setting without a stated default has none", () => {
  for (const [name, fallback] of rows) {
    if (codeSpan(fallback) === undefined) expect([name, fallback]).toEqual([name, expect.stringMatching(/^(none|[a-z<].*)$/)]);
  }
});
