import { expect, it } from "vitest";
import type { Sandbox } from "../src/index.ts";
import { addRunning, addTeam, BY, newBuild, newImage, newSandbox, type StoreContext } from "./store-contract.ts";

export function imageContract({ store, another }: StoreContext): void {
  const sandboxes = () => store().sandboxes;
  const atMost = (count: number) => ({ sandboxes: count, cpu: null, memoryMb: null, diskMb: null });
  const pause = async (id: string, teamId: string, imageId: string): Promise<Sandbox | undefined> => {
    const image = newImage(teamId, imageId, { sandboxId: id, kind: "pause" });
    const begin = { from: "running", to: "pausing", event: "pause", now: 20, ...BY, set: { imageId } } as const;
    if (!(await sandboxes().transition(id, { ...begin, image: { kind: "begin", image } }))) return undefined;
    return await sandboxes().transition(id, {
      from: "pausing",
      to: "paused",
      event: "paused",
      now: 30,
      ...BY,
      set: { pausedAt: 30, imageHasMemory: true, agentUnresponsive: false },
      image: { kind: "keep", id: imageId, hasMemory: true, sizeBytes: 2 ** 40 },
    });
  };

  it("changes a sandbox and its image in one step, or neither", async () => {
    const teamId = await addTeam(store());
    const id = await addRunning(store(), teamId);
    expect(await pause(id, teamId, "img1")).toMatchObject({ state: "paused", imageId: "img1", pausedAt: 30, version: 4 });
    expect(await store().images.find("img1")).toMatchObject({ state: "ready", sandboxId: id, hasMemory: true, sizeBytes: 2 ** 40 });
    expect(await pause(id, teamId, "img2")).toBeUndefined();
    expect(await store().images.find("img2")).toBeUndefined();
    const other = await addRunning(store(), teamId);
    await expect(pause(other, teamId, "img1")).rejects.toThrow();
    expect(await sandboxes().find(other)).toMatchObject({ state: "running", version: 2, imageId: null });
  });

  it("refuses what was decided on an older version", async () => {
    const teamId = await addTeam(store());
    const id = await addRunning(store(), teamId);
    const gone = { from: "running", to: "ended", event: "gone", reason: "node_lost", now: 40, ...BY } as const;
    expect(await sandboxes().transition(id, { ...gone, version: 1 })).toBeUndefined();
    expect(await sandboxes().transition(id, { ...gone, version: 2 })).toMatchObject({ state: "ended" });
  });

  it("lists what is paused, with its own state, beside what runs", async () => {
    const teamId = await addTeam(store());
    const [paused, running] = [await addRunning(store(), teamId, { startedAt: 5 }), await addRunning(store(), teamId, { startedAt: 6 })];
    await pause(paused, teamId, "img1");
    const list = async (listed?: "running" | "paused") =>
      (await sandboxes().list({ teamId, ...(listed ? { listed } : {}) }, { order: "desc", limit: 9 })).map((row) => row.id);
    expect(await list()).toEqual([running, paused]);
    expect(await list("running")).toEqual([running]);
    expect(await list("paused")).toEqual([paused]);
    expect(await sandboxes().count({ teamId, listed: "paused" })).toBe(1);
    await sandboxes().transition(running, { from: "running", to: "snapshotting", event: "snapshot", now: 9, ...BY });
    expect(await list("running")).toEqual([running]);
    expect(await sandboxes().findRoute(running, 9)).toBeDefined();
    expect(await sandboxes().findRoute(paused, 9)).toBeUndefined();
  });

  it("keeps a team to what it may run, also when it asks from several processes at once", async () => {
    const teamId = await addTeam(store());
    const second = await another();
    const asked = Array.from({ length: 12 }, (_, i) =>
      (i % 2 ? store() : second).sandboxes.insert(newSandbox(teamId), { ...BY, limits: atMost(5) }).then(
        () => "ok",
        (error: { code: string }) => error.code,
      ),
    );
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => answer === "ok")).toHaveLength(5);
    expect(answers.filter((answer) => answer === "limit_reached")).toHaveLength(7);
    // Another team's are not counted, nor is what is paused, nor is the limit only for creates.
    const other = await addTeam(store());
    const paused = await addRunning(store(), other);
    await pause(paused, other, "img1");
    await sandboxes().insert(newSandbox(other), { ...BY, limits: atMost(1) });
    const resume = { from: "paused", to: "resuming", event: "resume", now: 50, ...BY } as const;
    await expect(sandboxes().transition(paused, { ...resume, limits: atMost(1) })).rejects.toMatchObject({ code: "limit_reached" });
    expect(await sandboxes().transition(paused, { ...resume, limits: atMost(2) })).toMatchObject({ state: "resuming" });
  });

  it("expires what is to be paused apart from what is to be killed, and puts off what could not be", async () => {
    const teamId = await addTeam(store());
    const killed = await addRunning(store(), teamId, { endAt: 100 });
    const paused = await addRunning(store(), teamId, { endAt: 100, autoPause: true, autoPauseMemory: false });
    const expiry = { event: "expire", actor: "platform", owner: "api9", now: 100, limit: 9 } as const;
    expect(await sandboxes().expire({ ...expiry, to: "pausing" })).toEqual([
      expect.objectContaining({ id: paused, state: "pausing", owner: "api9", autoPauseMemory: false }),
    ]);
    expect(await sandboxes().find(paused)).toMatchObject({ endReason: null });
    const image = newImage(teamId, "img1", { sandboxId: paused, kind: "pause", owner: "api9" });
    expect(await sandboxes().beginImage(paused, image)).toBe(true);
    expect(await sandboxes().beginImage(paused, { ...image, id: "img2" })).toBe(false);
    const failed = { from: "pausing", to: "running", event: "pause_failed", now: 110, ...BY } as const;
    await sandboxes().transition(paused, {
      ...failed,
      set: { expireNotBefore: 150, imageId: null },
      image: { kind: "drop", id: "img1" },
    });
    expect(await sandboxes().expire({ ...expiry, to: "pausing", now: 149 })).toEqual([]);
    expect(await sandboxes().setEnd(paused, { endAt: 140, now: 120, onlyLater: true })).toBe(true);
    expect(await sandboxes().expire({ ...expiry, to: "pausing", now: 149 })).toHaveLength(1);
    expect(await sandboxes().expire({ ...expiry, to: "killing", now: 149 })).toEqual([
      expect.objectContaining({ id: killed, state: "killing" }),
    ]);
    expect(await store().images.listUnsettled("deleting", 9)).toEqual([expect.objectContaining({ id: "img1", kind: "pause" })]);
    await store().images.forget("img1");
    expect(await store().images.filterKnown(["img1", "img2"])).toEqual(new Set());
  });

  it("keeps snapshots under their names, lists them newest first, and finds them by where they come from", async () => {
    const teamId = await addTeam(store(), "acme");
    const snapshots = () => store().snapshots;
    const take = async (about: { id: string; name?: string; tag?: string; source?: string; at: number }) => {
      await store().images.insert(newImage(teamId, `img-${about.id}`));
      const image = { id: `img-${about.id}`, hasMemory: true, nodeId: "node1", sourceSandboxId: about.source ?? "i1" };
      return await snapshots().add({
        teamId,
        alias: about.name === undefined ? undefined : { namespace: "acme", alias: about.name },
        tag: about.tag ?? "default",
        build: { ...newBuild(about.id, { createdAt: about.at }), image },
        sizeBytes: 5,
      });
    };
    const first = await take({ id: "s1", at: 10 });
    const named = await take({ id: "s2", name: "foo", at: 20 });
    const again = await take({ id: "s3", name: "foo", tag: "v2", source: "i2", at: 30 });
    expect(named).toMatchObject({ template: { id: "s2", kind: "snapshot" }, tag: "default" });
    expect(again).toMatchObject({ template: { id: "s2" }, tag: "v2", build: { templateId: "s2" } });
    expect(await store().images.find("img-s3")).toMatchObject({ state: "ready", sizeBytes: 5 });
    const list = async (filter: object) =>
      (await snapshots().list({ teamId, ...filter }, { limit: 9 })).map(({ template, tag, build }) => [template.id, tag, build.image?.id]);
    expect(await list({})).toEqual([
      ["s2", "v2", "img-s3"],
      ["s1", "default", "img-s1"],
    ]);
    expect(await list({ tag: "default" })).toEqual([
      ["s2", "default", "img-s2"],
      ["s1", "default", "img-s1"],
    ]);
    expect(await list({ sourceSandboxId: "i2" })).toEqual([["s2", "v2", "img-s3"]]);
    expect(await list({ templateId: "s1" })).toEqual([["s1", "default", "img-s1"]]);
    const page = await snapshots().list({ teamId }, { limit: 1, after: { createdAt: 20, id: "s2" } });
    expect(page.map(({ template }) => template.id)).toEqual(["s1"]);
    expect(first !== "taken" && (await snapshots().findOfBuild(first.build.id))).toEqual(first);
    // Not among the templates, and not over the name of one.
    expect(await store().templateLists.listOfTeam(teamId, 9)).toEqual([]);
    await store().templates.putTemplate({ id: "t1", teamId, isPublic: false, now: 1 });
    await store().templates.putAlias({ namespace: "acme", alias: "mine", templateId: "t1", now: 1 });
    expect(await take({ id: "s4", name: "mine", at: 40 })).toBe("taken");
    const both = await Promise.all([take({ id: "s5", name: "race", at: 50 }), take({ id: "s6", name: "race", at: 50 })]);
    expect(new Set(both.map((taken) => taken !== "taken" && taken.template.id)).size).toBe(1);
  });

  it("gives a key to one of many who ask at once, and keeps its answer", async () => {
    const teamId = await addTeam(store());
    const second = await another();
    const record = { teamId, key: "k", fingerprint: "f", owner: "api1", createdAt: 100, subjects: ["i1"] };
    const asked = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 ? store() : second).idempotency.reserve({ ...record, owner: `api${i}` }, 0)),
    );
    expect(asked.filter((held) => held === undefined)).toHaveLength(1);
    const held = await store().idempotency.find(teamId, "k");
    expect(held).toMatchObject({ fingerprint: "f", subjects: ["i1"], answer: undefined });
    if (!held) return;
    expect(await store().idempotency.takeOver(held, { owner: "new", subjects: ["i2"] })).toBe(true);
    expect(await store().idempotency.takeOver(held, { owner: "late", subjects: ["i3"] })).toBe(false);
    const mine = { teamId, key: "k", owner: "new", subjects: ["i2"] };
    // What another try of the same process, or of another one, still has to say counts no more.
    for (const other of [{ owner: held.owner }, { subjects: held.subjects }]) {
      await store().idempotency.finish({ ...mine, ...other }, { status: 500, body: "no" });
      await store().idempotency.release({ ...mine, ...other });
    }
    await store().idempotency.finish(mine, { status: 201, body: "{}" });
    await store().idempotency.release(mine);
    expect(await store().idempotency.reserve(record, 0)).toMatchObject({ answer: { status: 201, body: "{}" }, subjects: ["i2"] });
    expect(await store().idempotency.reserve({ ...record, createdAt: 200 }, 101)).toBeUndefined();
    await store().idempotency.release(record);
    expect(await store().idempotency.find(teamId, "k")).toBeUndefined();
  });
}
