// Programs of two teams, with the official SDKs and the command line, side by side on one platform.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { prepareE2bCli, testCacheDir } from "@skerry/testkit";
import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { Sandbox, SandboxNotFoundError, Template, Volume } from "e2b";
import { expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

interface Team {
  readonly platform: SharedPlatform;
  readonly client: ReturnType<typeof clientOf>;
  readonly sandbox: Sandbox;
  readonly volume: Volume;
  readonly snapshotId: string;
}

/** The same names in both teams. */
async function furnish(platform: SharedPlatform): Promise<Team> {
  const client = clientOf(platform);
  const volume = await Volume.create("shared-name", client);
  const sandbox = await Sandbox.create({ ...client, metadata: { team: platform.teamSlug }, volumeMounts: { "/mnt/v": volume } });
  await sandbox.files.write("/mnt/v/whose", platform.teamSlug);
  const { snapshotId } = await sandbox.createSnapshot({ name: "same-name" });
  await callApi(platform, "/secrets", { body: { name: "same", value: platform.teamSlug } });
  return { platform, client, sandbox, volume, snapshotId };
}

const environmentOf = ({ platform }: Team) => ({ PATH: "/usr/bin:/bin", HOME: "/tmp", NO_COLOR: "1", ...platform.env });

async function cli(program: string, team: Team, ...args: string[]): Promise<string> {
  return (await runCommand(process.execPath, [program, ...args], { env: environmentOf(team), timeoutMs: 100_000 })).stdout;
}

/** Every list of the team names what is its own, and nothing of the other one. */
async function expectOwnLists(own: Team, other: Team): Promise<void> {
  const sandboxes = await Sandbox.list(own.client).nextItems();
  expect(sandboxes.map(({ sandboxId }) => sandboxId)).toEqual([own.sandbox.sandboxId]);
  expect((await Volume.list(own.client)).map(({ volumeId }) => volumeId)).toEqual([own.volume.volumeId]);
  expect((await Sandbox.listSnapshots(own.client).nextItems()).map(({ snapshotId }) => snapshotId)).toEqual([own.snapshotId]);
  for (const path of ["/v2/templates", "/templates", "/secrets", "/events?limit=100", "/audit?limit=100", "/snapshots"]) {
    const { status, body } = await callApi(own.platform, path);
    expect([path, status]).toEqual([path, 200]);
    const text = JSON.stringify(body);
    for (const foreign of [other.sandbox.sandboxId, other.volume.volumeId, other.platform.teamSlug, other.platform.secrets.teamId]) {
      expect(text.includes(foreign), `${path} names ${foreign}`).toBe(false);
    }
  }
}

/** What the other team has is not to be found. */
async function expectNoReach(own: Team, other: Team): Promise<void> {
  const { sandboxId } = other.sandbox;
  await expect(Sandbox.connect(sandboxId, own.client)).rejects.toBeInstanceOf(SandboxNotFoundError);
  await expect(Sandbox.getInfo(sandboxId, own.client)).rejects.toBeInstanceOf(SandboxNotFoundError);
  expect(await Sandbox.kill(sandboxId, own.client)).toBe(false);
  for (const action of ["pause", "fork", "snapshots", "timeout"]) {
    const body = action === "timeout" ? { timeout: 1 } : {};
    expect([action, (await callApi(own.platform, `/sandboxes/${sandboxId}/${action}`, { body })).status]).toEqual([action, 404]);
  }
  await expect(Volume.connect(other.volume.volumeId, own.client)).rejects.toThrow(/404|not found/i);
  await expect(Sandbox.create(`${other.platform.teamSlug}/same-name`, own.client)).rejects.toThrow();
  await expect(Template.exists(`${other.platform.teamSlug}/same-name`, own.client)).rejects.toThrow("must match your team");
  // The agent takes no other sandbox's token.
  const { sandboxUrl } = own.client;
  const headers = { "E2b-Sandbox-Id": sandboxId, "E2b-Sandbox-Port": "49983" };
  const { envdAccessToken } = (await callApi(own.platform, `/sandboxes/${own.sandbox.sandboxId}/connect`, { body: { timeout: 3_600 } }))
    .body as { envdAccessToken: string };
  const read = await fetch(`${sandboxUrl}/files?path=/mnt/v/whose`, { headers: { ...headers, "X-Access-Token": envdAccessToken } });
  expect(read.status).toBe(401);
}

it("programs of two teams see and reach only what is their own", async () => {
  await using one = await sharedPlatform("gvisor");
  await using two = await sharedPlatform("gvisor");
  const [first, second] = await Promise.all([furnish(one), furnish(two)]);
  const pairs = [
    [first, second],
    [second, first],
  ] as const;
  await Promise.all(pairs.map(([own, other]) => expectOwnLists(own, other)));
  await Promise.all(pairs.map(([own, other]) => expectNoReach(own, other)));

  const environment = readdirSync(testCacheDir()).find((name) => /^python-e2b-[\d.]+$/.test(name));
  if (!environment) throw new Error(`${testCacheDir()} has no Python environment with e2b: run ./skerry test once`);
  const python = join(testCacheDir(), environment, "bin/python");
  const program = await prepareE2bCli();
  await Promise.all(
    pairs.map(async ([own, other]) => {
      const script = [join(import.meta.dirname, "two_teams.py"), other.sandbox.sandboxId, other.volume.volumeId];
      const { stdout } = await runCommand(python, script, { env: environmentOf(own), timeoutMs: 120_000 });
      expect(stdout).toBe("all well\n");
      const listed = JSON.parse(await cli(program, own, "sandbox", "list", "--format", "json")) as { sandboxId: string }[];
      expect(listed.map(({ sandboxId }) => sandboxId)).toEqual([own.sandbox.sandboxId]);
      await cli(program, own, "sandbox", "kill", other.sandbox.sandboxId).catch(() => {});
    }),
  );

  // Everything is as it was.
  for (const { platform, sandbox, client } of [first, second]) {
    expect(await sandbox.isRunning()).toBe(true);
    const made = await Sandbox.create("same-name", client);
    expect(await made.files.read("/mnt/v/whose").catch(() => "no volume")).toMatch(new RegExp(`^(${platform.teamSlug}|no volume)$`));
    expect(await sandbox.files.read("/mnt/v/whose")).toBe(platform.teamSlug);
  }
});
