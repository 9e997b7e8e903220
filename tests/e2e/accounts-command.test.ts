// ./skerry users, teams and keys as a script uses them: what they make works with the official SDK at once, and stops at once.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runOperator } from "@skerry/operator";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { SkerryCommand } from "@skerry/testkit/skerry-command";
import { AuthenticationError, Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { callApi, clientOf } from "./client.ts";

let platform: SharedPlatform;
let dataDir: string;

beforeAll(async () => {
  platform = await sharedPlatform("runc");
  // `up` would have written the settings, from which the commands know the address of the API.
  dataDir = mkdtempSync(join(tmpdir(), "skerry-accounts-"));
  const { api, edge } = platform.ports;
  const settings = { runtime: "runc", listen: "127.0.0.1", apiPort: api, edgePort: edge, domain: platform.domain };
  writeFileSync(join(dataDir, "settings.json"), JSON.stringify(settings));
  writeFileSync(join(dataDir, "secrets.json"), JSON.stringify(platform.secrets), { mode: 0o600 });
});
afterAll(async () => {
  rmSync(dataDir, { recursive: true, force: true });
  await platform?.[Symbol.asyncDispose]();
});

interface Answer {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in this process, which takes less time than a process of its own. */
async function skerry(...args: string[]): Promise<Answer> {
  const written = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((stream) =>
    vi.spyOn(process[stream], "write").mockImplementation((text) => {
      written[stream] += String(text);
      return true;
    }),
  );
  const unused = () => Promise.reject(new Error("not in this test"));
  const context = { version: "0.0.0", repoRoot: "/nowhere", mainScript: "/nowhere/main.ts", env: { SKERRY_DATA: dataDir } };
  const doors = { serve: unused, readOwner: unused, copyDatabase: unused, restoreDatabase: unused, cleanup: unused };
  try {
    return { exitCode: await runOperator({ ...context, ...doors }, args), ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = undefined;
  }
}

/** What a command prints for scripts. */
async function printed(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await skerry(...args);
  expect({ args, exitCode, stderr }).toMatchObject({ args, exitCode: 0 });
  return stdout.trimEnd();
}

const json = async (...args: string[]) => JSON.parse(await printed(...args, "--json"));
const unique = (what: string) => `${what}-${randomBytes(4).toString("hex")}`;

test("a team, its members and keys are made, used and taken away", async () => {
  const slug = unique("research");
  const email = `${unique("ada")}@example.com`;
  const teamId = await printed("teams", "create", slug, "--name", "Research");
  const userId = await printed("users", "create", "Ada", "--email", email);
  expect(await json("teams", "set-member", slug, email, "developer")).toMatchObject({ userID: userId, role: "developer" });
  expect(await json("users", "show", email)).toMatchObject({ userID: userId, teams: [{ slug, role: "developer" }] });
  expect(await printed("teams", "members", slug)).toContain(email);

  // A user's token, and an invitation that another user accepts with a token.
  const token = await printed("users", "create-token", email, "laptop", "--expires", "1h");
  expect(token).toMatch(/^sk_e2b_[0-9a-f]{40}$/);
  const [listed] = await json("users", "tokens", email);
  expect(listed).toMatchObject({ name: "laptop", expiresAt: expect.any(String) });
  const guest = await printed("users", "create", "Guest");
  const guestToken = await printed("users", "create-token", guest, "t");
  const invitation = await printed("teams", "invite", slug, "viewer", "--expires-in", "1h");
  const headers = { Authorization: `Bearer ${guestToken}` };
  expect((await callApi(platform, "/invitations/accept", { body: { token: invitation }, headers })).status).toBe(200);
  expect(await json("teams", "show", slug)).toMatchObject({
    teamID: teamId,
    standing: "active",
    members: [
      { email, role: "developer" },
      { userID: guest, role: "viewer" },
    ],
    limits: { tier: "default" },
  });
  const withdrawn = await json("teams", "invite", slug, "viewer", "--email", "x@example.com");
  await printed("teams", "withdraw", slug, withdrawn.invitationID);
  expect(await json("teams", "invitations", slug)).toEqual([]);

  // The real command: the secret is alone on stdout.
  const { stdout } = await new SkerryCommand(dataDir).run("keys", "create", "ci", "--team", slug, "--scope", "sandboxes:read");
  const apiKey = stdout.trimEnd();
  expect(apiKey).toMatch(/^e2b_[0-9a-f]{40}$/);
  const client = { ...clientOf(platform), apiKey };
  expect(await Sandbox.list(client).nextItems()).toEqual([]);
  await expect(Sandbox.create("base", client)).rejects.toThrow(/sandboxes:write/);
  const limited = ["--metadata", "k=v", "--metadata", "a=b=c", "--expires", "30d"];
  expect(await json("keys", "create", "limited", "--team", teamId, ...limited)).toMatchObject({
    sandboxMetadata: { k: "v", a: "b=c" },
    scopes: ["sandboxes:*"],
  });
  const keys: { id: string; name: string }[] = await json("keys", "--team", slug);
  expect(keys.map(({ name }) => name)).toEqual(["ci", "limited"]);
  const table = await printed("keys", "--team", slug);
  for (const secret of [apiKey, token]) expect(table).not.toContain(secret);
  expect(table).toContain(`e2b_${apiKey.slice(4, 6)}…${apiKey.slice(-4)}`);
  await printed("keys", "rename", keys[0]?.id ?? "", "build", "--team", slug);
  await printed("keys", "delete", keys[0]?.id ?? "", "--team", slug);
  await expect(Sandbox.list(client).nextItems()).rejects.toThrow(AuthenticationError);

  await printed("users", "delete-token", email, listed.id);
  await printed("teams", "remove-member", slug, email, "--delete-keys");
  await printed("users", "rename", userId, "Ada L.");
  expect(await printed("users", "show", userId)).toMatch(/name +Ada L\.$/m);
  await printed("users", "delete", userId);
  await printed("teams", "rename", slug, "Gone");
  expect((await json("teams")).find(({ teamID }: { teamID: string }) => teamID === teamId)).toMatchObject({
    name: "Gone",
    runningSandboxes: 0,
  });
  expect((await json("teams", "kill", slug)).killedCount).toBe(0);
  expect((await json("teams", "cancel-builds", slug)).cancelledCount).toBe(0);
  await printed("teams", "delete", slug);
  expect((await skerry("teams", "show", slug)).exitCode).toBe(1);
});

test("limits, tiers and the standing of a team are set", async () => {
  const slug = unique("limited");
  const tier = unique("tier");
  await printed("teams", "create", slug);
  await printed("teams", "set-tier", tier, "--set", "sandboxes=0", "--set", "cpu=none");
  const set = ["--tier", tier, "--set", "snapshots=3", "--set", "builds=2"];
  expect(await json("teams", "limits", slug, ...set)).toMatchObject({
    tier,
    overrides: { snapshots: 3, builds: 2 },
    limits: { sandboxes: 0 },
  });
  expect(await json("teams", "limits", slug, "--unset", "builds")).toMatchObject({ tier, overrides: { snapshots: 3 } });
  expect(await printed("teams", "limits", slug)).toMatch(/^sandboxes +0 of 0$/m);
  expect(await printed("teams", "tiers")).toContain("sandboxes=0");
  const client = { ...clientOf(platform), apiKey: await printed("keys", "create", "k", "--team", slug) };
  await expect(Sandbox.create("base", client)).rejects.toThrow(/limit/);
  await printed("teams", "block", slug, "--reason", "unpaid");
  await expect(Sandbox.create("base", client)).rejects.toThrow("team is blocked: unpaid");
  await printed("teams", "ban", slug);
  await expect(Sandbox.list(client).nextItems()).rejects.toThrow("team is banned");
  await printed("teams", "activate", slug);
  expect(await Sandbox.list(client).nextItems()).toEqual([]);
  expect((await skerry("teams", "delete-tier", tier)).stderr).toContain("give them another tier first");
  await printed("teams", "limits", slug, "--tier", "default");
  await printed("teams", "delete-tier", tier);
  await printed("teams", "delete", slug);
});

test("what is wrong is refused with a mend, and nothing is made", async () => {
  const email = `${unique("twin")}@example.com`;
  const ids = [
    await printed("users", "create", "One\nID evil", "--email", email),
    await printed("users", "create", "Two", "--email", email),
  ];
  const refused: [string[], string | RegExp][] = [
    [["teams", "show", "no-such-team"], "./skerry teams lists"],
    [["users", "show", "nobody@example.com"], "./skerry users lists"],
    [["users", "show", email], new RegExp(`2 users have the address.*\\n.*${ids[1]}`)],
    [["users", "create", "Bad", "--email", "nowhere"], "must be an e-mail address"],
    [["teams", "create", "Not a Slug"], "body/slug"],
    [["teams", "create", "default"], "already"],
    [["keys", "create", "k", "--scope", "sandboxes:fly"], "there is no scope"],
    [["keys", "create", "k", "--scope", "keys:write"], "an API key can't have"],
    [["keys", "create", "k", "--expires", "2001-01-01T00:00:00Z"], "a time in the future"],
    [["keys", "delete", "x"], "Invalid API key ID"],
    [["teams", "limits", "default", "--set", "planes=1"], "planes"],
    [["teams", "limits", "default", "--unset", "cpu"], "no own limit"],
    [["teams", "delete", "default"], "can't be deleted"],
  ];
  for (const [args, reason] of refused) {
    const { exitCode, stdout, stderr } = await skerry(...args);
    expect({ args, exitCode, stdout, stderr }).toMatchObject({ args, exitCode: 1, stdout: "", stderr: expect.stringMatching(reason) });
  }
  // A name can't look like another row of the table.
  expect(await printed("users")).toContain("One ID evil");
  for (const id of ids) await printed("users", "delete", id);
});
