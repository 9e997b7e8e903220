import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type HostTraces, type Platform, readHostTraces, startPlatform } from "@skerry/testkit";
import { runtimesFor, sampleOf } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { describe, expect, it } from "vitest";
import { callApi, clientOf } from "../e2e/client.ts";
import { sandboxCgroups } from "./sandbox-cgroups.ts";

const READY_SLOTS = 3;

/** The traces of a platform with this many sandboxes and nothing else, as counts by kind. */
async function counts(platform: Platform): Promise<Record<string, number>> {
  const traces: HostTraces = await readHostTraces(platform.dataDir);
  const recorded = readdirSync(join(platform.dataDir, "node/sandboxes"));
  const database = new DatabaseSync(join(platform.dataDir, "skerry.db"), { readOnly: true });
  const rows = database.prepare("select state, count(*) as n from sandboxes where state <> 'ended' group by state").all();
  database.close();
  return {
    recorded: recorded.length,
    roots: traces.mounts.filter((path) => path.endsWith("/root")).length,
    trees: new Set(sandboxCgroups(platform)).size,
    running: Number(rows.find((row) => row.state === "running")?.n ?? 0),
    unfinished: rows.filter((row) => row.state !== "running").length,
    trash: readdirSync(join(platform.dataDir, "node/trash")).length,
  };
}

const expected = (sandboxes: number) => ({
  recorded: sandboxes,
  roots: sandboxes,
  trees: sandboxes,
  running: sandboxes,
  unfinished: 0,
  trash: 0,
});

const DELAYS_MS = sampleOf(
  "moments of a create and a kill at which a platform is killed",
  [0, 15, 40, 90, 160, 260],
  (_delayMs, index) => index % 2 === 0,
);

describe.each(runtimesFor("platforms that are killed during creates and kills"))("kill -9 of the platform on %s", (runtime) => {
  it("adopts running sandboxes, and releases half-created and half-killed ones", { timeout: 300_000 }, async () => {
    await using platform = await startPlatform({ runtime, env: { SKERRY_READY_SLOTS: String(READY_SLOTS) } });
    const client = clientOf(platform);
    const kept = await Promise.all([Sandbox.create(client), Sandbox.create(client)]);
    for (const sandbox of kept) {
      await sandbox.files.write("mark", sandbox.sandboxId);
      await sandbox.commands.run("sleep 1000", { background: true, timeoutMs: 0 });
    }
    const victim = await Sandbox.create(client);
    expect(await counts(platform)).toEqual(expected(3));

    // Each round kills the platform at another moment of a create and a kill.
    for (const delayMs of DELAYS_MS) {
      const doomed = delayMs === 0 ? victim : await Sandbox.create(client);
      const creating = callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 3_600 } }).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      const killing = callApi(platform, `/sandboxes/${doomed.sandboxId}`, { method: "DELETE" }).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, delayMs / 8));
      await platform.kill9();
      const answered = await creating;
      const killed = await killing;
      await platform.start();

      for (const sandbox of kept) {
        expect(await sandbox.files.read("mark")).toBe(sandbox.sandboxId);
        expect((await sandbox.commands.list()).length).toBeGreaterThan(0);
      }
      const acknowledged = answered?.status === 201 ? [(answered.body as { sandboxID: string }).sandboxID] : [];
      const surviving = await settledSandboxes(platform);
      expect(surviving).toEqual(expect.arrayContaining([...kept.map(({ sandboxId }) => sandboxId), ...acknowledged]));
      if (killed?.status === 204) expect(surviving).not.toContain(doomed.sandboxId);
      expect(await counts(platform)).toEqual(expected(surviving.length));
      for (const id of surviving) {
        if (!kept.some(({ sandboxId }) => sandboxId === id)) await callApi(platform, `/sandboxes/${id}`, { method: "DELETE" });
      }
    }
    await waitUntil("the trash is emptied", async () => (await counts(platform)).trash === 0);
    expect(await counts(platform)).toEqual(expected(2));
    const traces = await readHostTraces(platform.dataDir);
    // One per sandbox, and the ready ones.
    expect(traces.namespaces.length).toBe(traces.interfaces.length);
    expect(traces.namespaces.length).toBeGreaterThanOrEqual(2 + READY_SLOTS);
    expect(traces.namespaces.length).toBeLessThanOrEqual(2 + 2 * READY_SLOTS);
  });
});

/** The ids of the remaining sandboxes, once no operation is unfinished. */
async function settledSandboxes(platform: Platform): Promise<string[]> {
  await waitUntil("unfinished work is finished after a restart", async () => {
    const now = await counts(platform);
    return now.unfinished === 0 && now.trash === 0 && now.recorded === now.running && now.trees === now.running;
  });
  const listed = (await callApi(platform, "/v2/sandboxes")).body as { sandboxID: string }[];
  return listed.map(({ sandboxID }) => sandboxID);
}

it("keeps no secret of the platform in its log", async () => {
  await using platform = await startPlatform({ runtime: "runc" });
  const sandbox = await Sandbox.create({ ...clientOf(platform), envs: { PASSWORD: "hunter2-in-an-env-var" } });
  await sandbox.kill();
  const log = readFileSync(join(platform.dataDir, "logs/skerry.log"), "utf8");
  for (const secret of [...Object.values(platform.secrets).filter((value) => !/^[0-9a-f-]{36}$/.test(value)), "hunter2-in-an-env-var"]) {
    expect(log).not.toContain(secret);
  }
});
