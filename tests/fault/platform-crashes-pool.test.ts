// kill -9 of a platform at the crash points of its pool of ready sandboxes: no client's sandbox is lost, and creates keep working.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { waitUntil } from "@skerry/testkit/wait-until";
import { describe, expect, it } from "vitest";
import type { Runtime } from "./crash-points/plan.ts";
import { CrashingPlatform, sandboxIdOf } from "./platform-crashes/crashing-platform.ts";
import { type ApiOperation, platformCases, pointsOf } from "./platform-crashes/platform-cases.ts";
import { startWitness } from "./platform-crashes/witness.ts";

const startWithPool = (runtime: Runtime) => CrashingPlatform.start(runtime, { SKERRY_POOL_SIZE: "1" });

/** If the runtime keeps memory, the sandbox from which the template's image is made does not count. */
async function untilReady({ platform }: CrashingPlatform, runtime: Runtime): Promise<void> {
  const dir = join(platform.dataDir, "node/sandboxes");
  const isReady = (name: string) => {
    const record = readFileSync(join(dir, name, "sandbox.json"), "utf8");
    return record.includes('"state":"pooled"') && record.includes('"isRestored":true') === (runtime === "gvisor");
  };
  await waitUntil("a sandbox is ready", () => readdirSync(dir).some((name) => ifThere(() => isReady(name))), 60_000);
}

/** A file may be removed while it is read. */
function ifThere(look: () => boolean): boolean {
  try {
    return look();
  } catch {
    return false;
  }
}

// platform-crashes.test.ts has the sample of crash points.
describe.each(["gvisor", "runc"] as const)("kill -9 of a platform with a pool on %s", (runtime) => {
  const casesOf = (operation: ApiOperation) => platformCases(runtime, [operation]).map(({ point }) => point);

  it.each(["filling of the pool", "create from the pool"] as const)("%s: it has a crash point", (operation) => {
    expect(pointsOf(runtime, operation)).not.toEqual([]);
  });

  it.each(casesOf("filling of the pool"))("while it is filled, at %s", async (point) => {
    await using world = await startWithPool(runtime);
    const subject = await world.createSubject();
    const create = world.keyed("/v2/sandboxes", world.createBody());
    // With memory, the pool is filled after the first create, from an image that is made first. Without, it is refilled after each create.
    if (runtime === "runc") await untilReady(world, runtime);
    await world.crash(point, create);
    const id = sandboxIdOf(await world.expectStatus(create(), 201));
    await startWitness(world.platform, id);
    expect(await world.expectTold(subject, { since: 0, answers: [] })).toBe(true);
    expect(await world.listed()).toEqual([id, subject.id].sort());
    // The next create causes the pool to be refilled.
    await world.create();
    await untilReady(world, runtime);
  });

  it.each(casesOf("create from the pool"))("while a sandbox is claimed, at %s", async (point) => {
    await using world = await startWithPool(runtime);
    const subject = await world.createSubject();
    await untilReady(world, runtime);
    const create = world.keyed("/v2/sandboxes", world.createBody());
    expect(await world.crash(point, create)).toBeUndefined();
    const id = sandboxIdOf(await world.expectStatus(create(), 201));
    await startWitness(world.platform, id);
    expect(await world.expectTold(subject, { since: 0, answers: [] })).toBe(true);
    expect(await world.listed()).toEqual([id, subject.id].sort());
  });
});
