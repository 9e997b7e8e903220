import { describe, expect, it } from "vitest";
import { parseTags, parseTemplateName, tagsOfBuild } from "./template-name.ts";

const team = { id: "t", slug: "acme", name: "Acme" };
const uuid = "0198a5b2-0000-7000-8000-000000000000";

describe("parseTemplateName", () => {
  it.each([
    ["web", { alias: "web", tag: undefined }],
    [" Web:V1.2 ", { alias: "web", tag: "v1.2" }],
    ["acme/my_tpl-1:default", { alias: "my_tpl-1", tag: undefined }],
    ["x".repeat(128), { alias: "x".repeat(128), tag: undefined }],
  ])("reads %j", (text, expected) => {
    expect(parseTemplateName(text, team)).toEqual(expected);
  });

  it.each(["", " ", "/", "a/", "/a", ":v1", "a:", "a:b:c", "a/b/c", "a b", "ä", "a\0", "a:v/1", "x".repeat(129), `a:${uuid}`])(
    "refuses %j",
    (text) => {
      expect(() => parseTemplateName(text, team)).toThrow(/^Invalid name: /);
    },
  );

  it("refuses the namespace of another team", () => {
    expect(() => parseTemplateName("other/web", team)).toThrow("namespace 'other' must match your team 'acme'");
  });
});

describe("parseTags", () => {
  it("puts them in lower case and drops doubles", () => {
    expect(parseTags([" V1", "v1", "default", "a.b_c-d"])).toEqual(["v1", "default", "a.b_c-d"]);
  });

  it.each(["", ":x", "a:b", "a/b", "a b", "x".repeat(129), uuid, uuid.toUpperCase()])("refuses %j", (tag) => {
    expect(() => parseTags(["ok", tag])).toThrow(/^Invalid tag: /);
  });
});

it.each([
  ["web", undefined, ["default"]],
  ["web", [], ["default"]],
  ["web:default", ["v1"], ["v1"]],
  ["web:v1", ["V1", "v2"], ["v1", "v2"]],
  ["web:v1", ["default"], ["v1", "default"]],
])("a build of %j with the tags %j gets %j", (name, tags, expected) => {
  expect(tagsOfBuild(parseTemplateName(name, team), tags)).toEqual(expected);
});
