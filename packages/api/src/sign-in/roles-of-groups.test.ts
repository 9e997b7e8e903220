import { expect, test } from "vitest";
import { groupsOf, rolesOfGroups } from "./roles-of-groups.ts";

const grants = [
  { group: "staff", teamSlug: "research", role: "viewer" },
  { group: "leads", teamSlug: "research", role: "admin" },
  { group: "leads", teamSlug: "web", role: "developer" },
] as const;

test("a user has the highest of the roles that the groups give in each team", () => {
  expect([...rolesOfGroups(["staff"], grants)]).toEqual([["research", "viewer"]]);
  expect([...rolesOfGroups(["leads", "staff"], grants)]).toEqual([
    ["research", "admin"],
    ["web", "developer"],
  ]);
  expect([...rolesOfGroups(["strangers", "constructor"], grants)]).toEqual([]);
});

test("groups are a list or one text, also inside of other claims", () => {
  expect(groupsOf({ groups: ["a", 1, null, "b"] }, "groups")).toEqual(["a", "b"]);
  expect(groupsOf({ groups: "a" }, "groups")).toEqual(["a"]);
  expect(groupsOf({ realm_access: { roles: ["a"] } }, "realm_access.roles")).toEqual(["a"]);
  expect(groupsOf({ "https://example.com/groups": ["a"] }, "https://example.com/groups")).toEqual(["a"]);
  for (const payload of [{}, { groups: null }, { groups: { a: 1 } }, { groups: 1 }]) expect(groupsOf(payload, "groups")).toEqual([]);
  expect(groupsOf({}, "constructor.name")).toEqual([]);
});
