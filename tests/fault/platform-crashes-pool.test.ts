// kill -9 of a platform at crash points of its pool of ready sandboxes: nobody's sandbox is lost, and creates go on.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { waitUntil } from "@skerry/testkit/wait-until";
import { describe, expect, it } from "vitest";
import type { Runtime } from "./crash-points/plan.ts";
import { CrashingPlatform, sandboxIdOf } from "./platform-crashes/crashing-platform.ts";
import { type ApiOperation, platformCases, pointsOf } from "./platform-crashes/platform-cases.ts";
import { startWitness } from "./platform-crashes/witness.ts";

const startWithPool = (runtime: Runtime) => CrashingPlatform.start(runtime, { SKERRY_POOL_SIZE: "1" });

/** Where memory is kept, the sandbox that the template's image is taken of does not count. */
async function untilReady({ platform }: CrashingPlatform, runtime: Runtime): Promise<void> {
  const dir = join(platform.dataDir, "node/sandboxes");
  const isReady = (name: string) => {
    const record = readFileSync(join(dir, name, "sandbox.json"), "utf8");
    return record.includes('"state":"pooled"') && record.includes('"isRestored":true') === (runtime === "gvisor");
  };
  await waitUntil("a sandbox is ready", () => readdirSync(dir).some((name) => ifThere(() => isReady(name))), 60_000);
}

/** It may go while it is looked at. */
function ifThere(look: () => boolean): boolean {
  try {
    return look();
  } catch {
    return false;
  }
}

// A sample of crash points is in platform-crashes.test.ts.
describe.each(["gvisor", "runc"] as const)("kill -9 of a platform with a pool on %s", { timeout: 120_000 }, (runtime) => {
  const casesOf = (operation: ApiOperation) => platformCases(runtime, [operation]).map(({ point }) => point);

  it.each(["filling of the pool", "create from the pool"] as const)("%s: there is a point to end it at", (operation) => {
    expect(pointsOf(runtime, operation)).not.toEqual([]);
  });

  it.each(casesOf("filling of the pool"))("while it is filled, at %s", async (point) => {
    await using world = await startWithPool(runtime);
    const subject = await world.createSubject();
    const create = world.keyed("/v2/sandboxes", world.createBody());
    // With memory it is filled behind the first create, from an image that is made first; without, it is filled again behind each.
    if (runtime === "runc") await untilReady(world, runtime);
    await world.crash(point, create);
    const id = sandboxIdOf(await world.expectStatus(create(), 201));
    await startWitness(world.platform, id);
    expect(await world.expectTold(subject, { since: 0, answers: [] })).toBe(true);
    expect(await world.listed()).toEqual([id, subject.id].sort());
    // It is filled again behind the next create.
    await world.create();
    await untilReady(world, runtime);
  });

  it.each(casesOf("create from the pool"))("while one is handed out, at %s", async (point) => {
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
