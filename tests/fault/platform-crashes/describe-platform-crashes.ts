// Kills the whole platform (API, edge and node in one process, SQLite) at every crash point of its API operations, and starts it again. A
// witness in the sandbox reports what is left of its processes, open files, memory, counters and connections. The response, the header
// for lost memory and the journal must agree with the witness.

import type { CrashPoint } from "@skerry/node/crash-points";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFailed } from "vitest";
import type { Runtime } from "../crash-points/plan.ts";
import { CrashingPlatform, type Subject, sandboxIdOf } from "./crashing-platform.ts";
import { journalOf } from "./journal.ts";
import { type ApiOperation, platformCases, pointsOf } from "./platform-cases.ts";
import { VOLUME_OPERATIONS } from "./volume-operations.ts";
import { changeLinked } from "./witness.ts";

interface Scene {
  readonly world: CrashingPlatform;
  readonly runtime: Runtime;
  /** A running sandbox with a witness. All tests share it, so that it has been through all earlier operations. */
  readonly subject: Subject;
  readonly point: CrashPoint;
}

/** Each operation, as the test of one crash point in it. */
const OPERATIONS: Partial<Record<ApiOperation, (scene: Scene) => Promise<void>>> = {
  create: async ({ world, subject, point }) => {
    const since = world.journalEnd(subject.id);
    const create = world.keyed("/v2/sandboxes", world.createBody());
    await world.crash(point, create);
    const id = sandboxIdOf(await world.expectStatus(create(), 201));
    expect(await world.listed()).toEqual([id, subject.id].sort());
    await world.expectStatus(world.kill(id), 204);
    expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  },
  kill: async (scene) => expectKilled(scene, await scene.world.create()),
  "kill of a paused one": async (scene) => {
    const id = await scene.world.create();
    await scene.world.expectStatus(scene.world.pause(id), 204);
    await expectKilled(scene, id);
  },
  pause: async ({ world, runtime, subject, point }) => {
    const since = world.journalEnd(subject.id);
    await world.crash(point, () => world.pause(subject.id));
    // Either way the request can be repeated.
    if ((await world.stateOf(subject.id)) === "running") expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
    await world.expectStatus(world.pause(subject.id), 204, 409);
    const filesOnly = await world.saysFilesOnly(subject.id);
    const answer = await world.expectStatus(world.connect(subject.id), 201);
    expect(await world.expectTold(subject, { since, answers: [answer], filesOnly })).toBe(runtime === "gvisor");
  },
  resume: async ({ world, runtime, subject, point }) => {
    const since = world.journalEnd(subject.id);
    await world.expectStatus(world.pause(subject.id), 204);
    const filesOnly = await world.saysFilesOnly(subject.id);
    const first = await world.crash(point, () => world.connect(subject.id));
    const answers = [...(first ? [first] : []), await world.expectStatus(world.connect(subject.id), 200, 201)];
    expect(await world.expectTold(subject, { since, answers, filesOnly })).toBe(runtime === "gvisor");
  },
  snapshot: (scene) => expectSnapshot(scene, { memory: true }),
  "snapshot of the disk": (scene) => expectSnapshot(scene, { memory: false }),
  fork: (scene) => expectFork(scene),
  "fork of a paused one": async (scene) => {
    const { world, subject } = scene;
    // Earlier copies of the file have all of its names.
    await changeLinked(world.platform, subject.id);
    await world.expectStatus(world.pause(subject.id), 204);
    await expectFork(scene);
  },
  "create from a snapshot": async ({ world, runtime, subject, point }) => {
    const snapshotID = await takeSnapshot(world, subject);
    const create = world.keyed("/v2/sandboxes", world.createBody(snapshotID));
    const first = await world.crash(point, create);
    const answer = await world.expectStatus(create(), 201);
    const id = sandboxIdOf(answer);
    const told = { since: 0, answers: [...(first ? [first] : []), answer], filesOnly: runtime === "runc" };
    expect(await world.expectTold({ ...subject, id }, told)).toBe(runtime === "gvisor");
    expect(await world.listed()).toEqual([id, subject.id].sort());
    await world.expectStatus(world.kill(id), 204);
    await world.expectStatus(world.call(`/templates/${snapshotID}`, { method: "DELETE" }), 204);
  },
  "change of its network": async ({ world, subject, point }) => {
    const since = world.journalEnd(subject.id);
    const network = { denyOut: ["198.51.100.0/24"] };
    const change = (body: object) => world.call(`/sandboxes/${subject.id}/network`, { method: "PUT", body });
    const shown = async () => ((await world.call(`/sandboxes/${subject.id}`)).body as { network?: object }).network;
    await world.crash(point, () => change(network));
    // Nobody was answered. What the database has reaches the node, whichever it is.
    const expected = JSON.stringify(await shown());
    await waitUntil("the node has the rules of the database", () => JSON.stringify(world.rulesOf(subject.id)) === expected);
    await world.expectStatus(change(network), 204);
    expect(await shown()).toEqual(network);
    expect(world.rulesOf(subject.id)).toEqual(network);
    await world.expectStatus(change({}), 204);
    expect(await shown()).toBeUndefined();
    expect(world.rulesOf(subject.id)).toBeUndefined();
    expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  },
  "death of its runtime": async ({ world, subject, point }) => {
    const since = world.journalEnd(subject.id);
    await world.crash(point, async () => {
      process.kill(world.runtimePidOf(subject.id), "SIGKILL");
      return undefined;
    });
    await expect.poll(() => world.stateOf(subject.id)).toBe("paused");
    expect(await world.saysFilesOnly(subject.id)).toBe(true);
    const answer = await world.expectStatus(world.connect(subject.id), 201);
    expect(await world.expectTold(subject, { since, answers: [answer] })).toBe(false);
    expect(answer.headers.get("Skerry-Memory-Lost")).toContain("runtime ended");
  },
  "deletion of a snapshot": async ({ world, subject, point }) => {
    const snapshotID = await takeSnapshot(world, subject);
    const since = world.journalEnd(subject.id);
    const remove = () => world.call(`/templates/${snapshotID}`, { method: "DELETE" });
    await world.crash(point, remove);
    await world.expectStatus(remove(), 204, 404);
    await world.expectStatus(world.call("/v2/sandboxes", { body: world.createBody(snapshotID) }), 404);
    expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  },
  ...VOLUME_OPERATIONS,
};

/** Operations after which the subject has lost its memory. */
const LAST: ApiOperation = "death of its runtime";

async function takeSnapshot(world: CrashingPlatform, { id }: Subject): Promise<string> {
  const taken = await world.expectStatus(world.call(`/sandboxes/${id}/snapshots`, { body: {} }), 201);
  return (taken.body as { snapshotID: string }).snapshotID;
}

async function expectKilled({ world, subject, point }: Scene, id: string): Promise<void> {
  const since = world.journalEnd(subject.id);
  await world.crash(point, () => world.kill(id));
  await world.expectStatus(world.kill(id), 204, 404);
  expect(await world.stateOf(id)).toBe("gone");
  await expect.poll(() => journalOf(world.platform, id).slice(-2)).toMatchObject([{ event: "kill", reason: "request" }, { to: "ended" }]);
  expect(await world.listed()).toEqual([subject.id]);
  expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
}

async function expectSnapshot({ world, runtime, subject, point }: Scene, { memory }: { memory: boolean }): Promise<void> {
  const since = world.journalEnd(subject.id);
  const snapshot = world.keyed(`/sandboxes/${subject.id}/snapshots`, { memory });
  await world.crash(point, snapshot);
  expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  const { snapshotID } = (await world.expectStatus(snapshot(), 201)).body as { snapshotID: string };
  const answer = await world.expectStatus(world.call("/v2/sandboxes", { body: world.createBody(snapshotID) }), 201);
  const id = sandboxIdOf(answer);
  const keepsMemory = memory && runtime === "gvisor";
  expect(await world.expectTold({ ...subject, id }, { since: 0, answers: [answer], filesOnly: !keepsMemory })).toBe(keepsMemory);
  expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  await world.expectStatus(world.kill(id), 204);
  await world.expectStatus(world.call(`/templates/${snapshotID}`, { method: "DELETE" }), 204);
}

/** Snapshots the subject, which is running or paused. */
async function expectFork({ world, runtime, subject, point }: Scene): Promise<void> {
  const wasPaused = (await world.stateOf(subject.id)) === "paused";
  const filesOnly = wasPaused && (await world.saysFilesOnly(subject.id));
  const since = world.journalEnd(subject.id);
  const forkPath = `/sandboxes/${subject.id}/fork`;
  const fork = world.keyed(forkPath, { timeout: 3_600 });
  await world.crash(point, fork);
  if (!wasPaused) expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  let answer = await world.expectStatus(fork(), 201);
  // A sandbox that did not start is a failure in the response, and stays one under this key.
  if (!forkIn(answer)) answer = await world.expectStatus(world.keyed(forkPath, { timeout: 3_600 })(), 201);
  const id = forkIn(answer) ?? "";
  const keepsMemory = runtime === "gvisor";
  expect(await world.expectTold({ ...subject, id }, { since: 0, answers: [answer], filesOnly: !keepsMemory })).toBe(keepsMemory);
  expect(await world.stateOf(subject.id)).toBe(wasPaused ? "paused" : "running");
  expect(await world.listed()).toEqual([id, subject.id].sort());
  const answers = wasPaused ? [await world.expectStatus(world.connect(subject.id), 201)] : [];
  expect(await world.expectTold(subject, { since, answers, filesOnly })).toBe(!wasPaused || runtime === "gvisor");
  await world.expectStatus(world.kill(id), 204);
}

function forkIn({ body }: { body: unknown }): string | undefined {
  return (body as { sandbox?: { sandboxID: string } }[])[0]?.sandbox?.sandboxID;
}

/** Tests the cases of these operations on one platform. */
export function describePlatformCrashes(runtime: Runtime, operations: readonly ApiOperation[]): void {
  it.each(operations)("%s: it has a test and a crash point", (operation) => {
    expect(OPERATIONS[operation]).toBeDefined();
    expect(pointsOf(runtime, operation)).not.toEqual([]);
  });
  const cases = platformCases(runtime, operations);
  if (cases.length === 0) return;
  let world: CrashingPlatform;
  let subject: Subject | undefined;
  beforeAll(async () => {
    world = await CrashingPlatform.start(runtime);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    await world.untilQuiet();
    subject ??= await world.createSubject();
  });

  it.each(cases)("in a $operation at $point", async ({ operation, point }) => {
    const test = OPERATIONS[operation];
    if (!test || !subject) throw new Error(`there is no test for ${operation}`);
    const scene = { world, runtime, subject, point };
    // Replace the subject after a failure, and after an operation that loses its memory.
    subject = undefined;
    onTestFailed(async () => {
      for (const id of await world.listed().catch(() => [])) await world.kill(id);
    });
    await test(scene);
    if (runtime === "gvisor" && operation !== LAST) subject = scene.subject;
    else await world.expectStatus(world.kill(scene.subject.id), 204);
  });
}
