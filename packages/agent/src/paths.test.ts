import { describe, expect, it } from "vitest";
import { expandPath } from "./paths.ts";

const context = { home: "/home/user", defaultWorkdir: undefined };

describe("expandPath", () => {
  it.each([
    ["", "/home/user"],
    ["~", "/home/user"],
    ["~/x/../y", "/home/user/y"],
    ["~/", "/home/user"],
    ["~\\x", "/home/user/\\x"],
    ["a/b", "/home/user/a/b"],
    ["../user/q", "/home/user/q"],
    ["trail/", "/home/user/trail"],
    [".", "/home/user"],
    ["/home/user/../user/q", "/home/user/../user/q"],
    ["/etc/", "/etc/"],
    ["/", "/"],
  ])("takes %j for %s", (path, expected) => {
    expect(expandPath(path, context)).toBe(expected);
  });

  it("refuses the home directory of another user", () => {
    expect(() => expandPath("~other/x", context)).toThrow("cannot expand user-specific home dir");
  });

  it("uses the default directory for an empty path only", () => {
    const withWorkdir = { ...context, defaultWorkdir: "/mnt" };
    expect(expandPath("", withWorkdir)).toBe("/mnt");
    expect(expandPath("x", withWorkdir)).toBe("/home/user/x");
  });
});
