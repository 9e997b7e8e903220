import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { readLink } from "./shown-link.ts";

const TOKEN = `lnk_${"a".repeat(20)}.${"s".repeat(43)}`;
const shown = { token: TOKEN, linkId: `lnk_${"a".repeat(20)}`, digest: hash("sha256", TOKEN, "buffer") };

test.each([
  ["/", "/"],
  [`/?skerry-link=${TOKEN}`, "/"],
  [`/?skerry-link=${TOKEN}&`, "/?"],
  [`/?a&skerry-link=${TOKEN}&a=%zz&b=`, "/?a&a=%zz&b="],
  [`/?a=?skerry-link=${TOKEN}`, `/?a=?skerry-link=${TOKEN}`],
  [`/skerry-link=${TOKEN}`, `/skerry-link=${TOKEN}`],
  [`/?skerry-linked=${TOKEN}`, `/?skerry-linked=${TOKEN}`],
  [`*`, `*`],
])("the path %s becomes %s", (before, after) => {
  const { path, link } = readLink([], before);
  expect(path).toBe(after);
  expect(link).toEqual(before === after ? undefined : { by: "query", tokens: [shown] });
});

test("what cannot be a token, or is shown twice, is a link that opens nothing", () => {
  for (const query of [
    "skerry-link",
    "skerry-link=",
    "skerry-link=x",
    `skerry-link=${TOKEN}x`,
    `skerry-link=${TOKEN}&skerry-link=${TOKEN}`,
  ]) {
    expect([query, readLink([], `/?${query}`)]).toEqual([query, { link: { by: "query", tokens: [] }, path: "/" }]);
  }
  expect(readLink(["Skerry-Link-Token", TOKEN, "skerry-link-token", TOKEN], "/").link).toEqual({ by: "header", tokens: [] });
});

test("at most four cookies are tried, and none beside a link that somebody chose", () => {
  const cookies = ["Cookie", `a=b;skerry-link=${TOKEN} ; skerry-linked=${TOKEN}`, "cookie", `skerry-link=x; skerry-link=${TOKEN}`];
  expect(readLink(cookies, "/").link).toEqual({ by: "cookie", tokens: [shown, shown] });
  expect(readLink(["Cookie", `${"skerry-link=x; ".repeat(4)}skerry-link=${TOKEN}`], "/").link).toEqual({ by: "cookie", tokens: [] });
  expect(readLink([...cookies, "Skerry-Link-Token", ""], "/").link).toEqual({ by: "header", tokens: [] });
});
