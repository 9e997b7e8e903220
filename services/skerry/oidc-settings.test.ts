import { expect, it } from "vitest";
import { parseServeConfig } from "./config.ts";

const good = {
  SKERRY_OIDC_ISSUER: "https://login.example.com/",
  SKERRY_OIDC_AUDIENCE: "skerry,other",
  SKERRY_OIDC_TEAMS: "staff=default:developer,cn=admins=research:owner",
};

it("reads an identity provider, and what its groups mean", () => {
  expect(parseServeConfig(good).oidc).toEqual({
    issuer: "https://login.example.com/",
    audiences: ["skerry", "other"],
    groupsClaim: "groups",
    grants: [
      { group: "staff", teamSlug: "default", role: "developer" },
      { group: "cn=admins", teamSlug: "research", role: "owner" },
    ],
    clockSkewMs: 60_000,
    maxTokenAgeMs: 86_400_000,
  });
  expect(parseServeConfig({}).oidc).toBeUndefined();
});

it.each([
  ["SKERRY_OIDC_ISSUER", "http://login.example.com", "takes an https address"],
  ["SKERRY_OIDC_ISSUER", "", "need SKERRY_OIDC_ISSUER"],
  ["SKERRY_OIDC_AUDIENCE", "", "must name the client"],
  ["SKERRY_OIDC_TEAMS", "", "must say which groups"],
  ["SKERRY_OIDC_TEAMS", "staff=default:king", 'not "staff=default:king"'],
  ["SKERRY_OIDC_TEAMS", "staff=Default:owner", "takes entries such as"],
  ["SKERRY_OIDC_TEAMS", "=default:owner", "takes entries such as"],
  ["SKERRY_OIDC_MAX_TOKEN_HOURS", "0", "SKERRY_OIDC_MAX_TOKEN_HOURS"],
])("refuses %s=%j", (name, value, reason) => {
  expect(() => parseServeConfig({ ...good, [name]: value })).toThrow(reason);
});
