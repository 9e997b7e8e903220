import { describe, expect, it } from "vitest";
import { parseTemplateReference } from "./reference.ts";

describe("parseTemplateReference", () => {
  it.each([
    ["base", { namespace: undefined, name: "base", tag: undefined }],
    ["  Base:Default ", { namespace: undefined, name: "base", tag: undefined }],
    ["team/my_tpl-1:v1.2", { namespace: "team", name: "my_tpl-1", tag: "v1.2" }],
    ["base:0198a5b2-0000-7000-8000-000000000000", { namespace: undefined, name: "base", tag: "0198a5b2-0000-7000-8000-000000000000" }],
  ])("reads %j", (text, expected) => {
    expect(parseTemplateReference(text)).toEqual(expected);
  });

  it.each(["", " ", "/", "a/", "/a", ":v1", "a:", "a:b:c", "a/b/c", "a b", "ä", "a\0", "../etc", "a:v/1", "a\nb"])("refuses %j", (text) => {
    expect(() => parseTemplateReference(text)).toThrow(/^Invalid template reference: invalid template ID: /);
  });
});
