import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROLES } from "@skerry/store";
import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../http/operations.ts";
import { allows, isGrant, KEY_SCOPES, ROLE_RIGHTS, ROLE_SCOPES, SCOPES, type Scope, scopesIn } from "./scopes.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../../docs/teams.md"), "utf8");
const ALL = Object.keys(SCOPES) as Scope[];

describe("scopes", () => {
  it("are those of the page, with the same roles", () => {
    const rows = [...PAGE.matchAll(/^\| `(\w+:\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$/gm)];
    const asWritten = rows.map(([, scope, meaning, ...marks]) => [scope, meaning, ...marks.map((mark) => mark === "yes")]);
    expect(asWritten).toEqual(
      ALL.map((scope) => [scope, SCOPES[scope], ...ROLES.map((role) => allows(ROLE_SCOPES[role], scope)), KEY_SCOPES.includes(scope)]),
    );
  });

  it("are named by every operation, in accordance with its credentials", () => {
    for (const { id, auth, scope, path } of OPERATIONS) {
      const about = `${id} needs ${scope}`;
      if (auth.length === 0 || scope === "anyone") expect([about, auth, scope]).toEqual([about, [], "anyone"]);
      else if (scope === "operator") expect([about, auth]).toEqual([about, ["admin"]]);
      else {
        expect(ALL, about).toContain(scope);
        // An API key could never call it otherwise.
        if (auth.includes("apiKey")) expect(KEY_SCOPES, about).toContain(scope);
        else expect(auth, about).toContain("accessToken");
      }
      if (path.startsWith("/admin/") || path.startsWith("/nodes")) expect(scope, id).toBe("operator");
    }
    const used = new Set(OPERATIONS.map(({ scope }) => scope));
    expect(ALL.filter((scope) => !used.has(scope))).toEqual([]);
  });

  it("that a read needs allow no change", () => {
    for (const { id, method, scope } of OPERATIONS) {
      if (scope.endsWith(":read")) expect([id, method]).toEqual([id, "GET"]);
    }
  });

  it("of a role that makes API keys include all that a key can have", () => {
    for (const role of ROLES) {
      const makesKeys = allows(ROLE_SCOPES[role], "keys:write");
      expect(ROLE_RIGHTS[role].changesKeys !== "none").toBe(makesKeys);
      if (makesKeys) for (const scope of KEY_SCOPES) expect(allows(ROLE_SCOPES[role], scope), `${role} ${scope}`).toBe(true);
    }
  });

  it("match themselves, all of their kind, and everything", () => {
    expect(allows(["sandboxes:read"], "sandboxes:read")).toBe(true);
    expect(allows(["sandboxes:read"], "sandboxes:write")).toBe(false);
    expect(allows(["sandboxes:*"], "sandboxes:write")).toBe(true);
    expect(allows(["sandboxes:*"], "secrets:read")).toBe(false);
    expect(allows(["*"], "secrets:read")).toBe(true);
    expect(allows([], "secrets:read")).toBe(false);
    expect(scopesIn(["volumes:*", "team:read"])).toEqual(["volumes:read", "volumes:write", "team:read"]);
    expect(["*", "sandboxes:*", "sandboxes:read"].every(isGrant)).toBe(true);
    for (const text of ["", "x", "sandboxes", "sandboxes:", "sandboxes:kill", "*:*", "*:read", "sandboxes:read "]) {
      expect(isGrant(text), text).toBe(false);
    }
  });
});
