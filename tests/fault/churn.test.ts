import { type Platform, readHostTraces, startPlatform } from "@skerry/testkit";
import { runtimesFor, scaled } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { describe, expect, it } from "vitest";
import { callApi } from "../e2e/client.ts";
import { sandboxCgroups } from "./sandbox-cgroups.ts";

const CREATES = scaled("creates and kills in a row on each runtime", { sample: 24, full: 200 });
const AT_ONCE = 8;

describe.each(runtimesFor("churn", "runc"))("churn on %s", (runtime) => {
  it(`${CREATES} creates and kills, ${AT_ONCE} at a time, leave nothing`, { timeout: 600_000 }, async () => {
    await using platform = await startPlatform({ runtime, env: { SKERRY_READY_SLOTS: "4" } });
    const before = await steadyState(platform);
    let left = CREATES;
    const worker = async () => {
      while (left > 0) {
        left -= 1;
        const created = await callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 3_600 } });
        expect(created.status).toBe(201);
        const { sandboxID } = created.body as { sandboxID: string };
        expect((await callApi(platform, `/sandboxes/${sandboxID}`, { method: "DELETE" })).status).toBe(204);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    await waitUntil("the host looks as before", async () => JSON.stringify(await steadyState(platform)) === JSON.stringify(before)).catch(
      async () => expect(await steadyState(platform)).toEqual(before),
    );
    expect((await callApi(platform, "/v2/sandboxes")).body).toEqual([]);
  });
});

/** All traces but the number of prepared slots, which may double in a burst. The processes are the platform's own. */
async function steadyState(platform: Platform) {
  const traces = await readHostTraces(platform.dataDir);
  expect(traces.namespaces.length).toBeLessThanOrEqual(8);
  expect(traces.interfaces.length).toBe(traces.namespaces.length);
  return {
    processes: traces.processes.length,
    tables: traces.tables.length,
    roots: traces.mounts.filter((path) => path.endsWith("/root")),
    sandboxCgroups: sandboxCgroups(platform),
  };
}
