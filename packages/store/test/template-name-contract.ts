// Names, visibility and tags of templates, also when several processes change them at once. Run on each database by store.test.ts.

import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { BuildRegistration, Store } from "../src/index.ts";
import { addTeam, newBuild, newImage, nextId, type StoreContext } from "./store-contract.ts";

const AT_ONCE = 6;

function registration(teamId: string, fields: Partial<BuildRegistration["claim"]> = {}, tags = ["default"]): BuildRegistration {
  return {
    claim: { teamId, newId: nextId(), now: 10, ...fields },
    build: { id: randomUUID(), cpuCount: 2, memoryMb: 512, diskSizeMb: 0 },
    tags,
    maxBuilds: 100,
    superseded: { message: "superseded" },
  };
}

export function templateNameContract({ store, another }: StoreContext): void {
  const both = async (): Promise<readonly Store[]> => [store(), await another()];

  it("a build means the template of its name, or a new one, also when several ask at once", async () => {
    const teamId = await addTeam(store(), "acme");
    const alias = { namespace: "acme", alias: "web" };
    const stores = await both();
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) => stores[i % 2]?.builds.register(registration(teamId, { alias }, [`v${i}`]))),
    );
    const templates = new Set(answers.map((answer) => (answer?.kind === "registered" ? answer.template.id : answer?.kind)));
    expect(templates.size).toBe(1);
    const [listed] = await store().templateLists.listOfTeam(teamId, 9);
    expect(listed).toMatchObject({ template: { id: [...templates][0], updatedAt: 10 }, aliases: [alias], buildCount: AT_ONCE });
    const named = await store().builds.register(registration(teamId, { alias: { namespace: "acme", alias: "web2" } }));
    expect(named).toMatchObject({ kind: "registered" });
    expect(await store().templateLists.listOfTeam(teamId, 9)).toHaveLength(2);
  });

  it("a build gets no name that is taken, and no template that is not its team's", async () => {
    const [teamId, otherId] = [await addTeam(store(), "acme"), await addTeam(store(), "other")];
    const { builds, templates, images, snapshots } = store();
    const alias = (name: string) => ({ namespace: "acme", alias: name });
    for (const [id, owner] of [
      ["t1", teamId],
      ["t2", teamId],
      ["t3", otherId],
      ["t4", teamId],
    ] as const) {
      await templates.putTemplate({ id, teamId: owner, isPublic: true, now: 1 });
    }
    await templates.putAlias({ ...alias("web"), templateId: "t1", now: 1 });
    await templates.delete("t4", 2);
    await images.insert(newImage(teamId, "img"));
    const image = { id: "img", hasMemory: true, nodeId: "node1", sourceSandboxId: "i1" };
    const taken = { ...newBuild("snap"), image };
    expect(await snapshots.add({ teamId, alias: alias("t1"), tag: "default", build: taken, sizeBytes: 1 })).toBe("taken");
    await snapshots.add({ teamId, alias: alias("shot"), tag: "default", build: taken, sizeBytes: 1 });
    const ask = async (fields: Partial<BuildRegistration["claim"]>) => (await builds.register(registration(teamId, fields))).kind;
    expect(await ask({ alias: alias("shot") })).toBe("name-taken");
    for (const id of ["t1", "t3", "t4"]) expect(await ask({ alias: alias(id) })).toBe("name-is-id");
    expect(await ask({ templateId: "t2", alias: alias("web") })).toBe("name-taken");
    expect(await ask({ templateId: "t2", alias: alias("t2") })).toBe("name-is-id");
    expect(await ask({ templateId: "t3" })).toBe("foreign");
    expect(await ask({ templateId: "t4" })).toBe("deleted");
    for (const id of ["nope", "snap"]) expect(await ask({ templateId: id })).toBe("not-found");
    expect(await ask({ templateId: "t1" })).toBe("registered");
    expect(await ask({ templateId: "t1", alias: alias("web") })).toBe("registered");
    expect(await ask({ templateId: "t2", alias: alias("second") })).toBe("registered");
    expect(await templates.listAliases("t2")).toEqual([alias("second")]);
    expect(await templates.listAliases("t1")).toEqual([alias("web")]);
  });

  it("a bare name belongs to one of several templates that are published at once", async () => {
    const stores = await both();
    const published = Array.from({ length: AT_ONCE }, (_, i) => `p${i}`);
    for (const id of published) {
      const teamId = await addTeam(store(), `team-${id}`);
      await store().templates.putTemplate({ id, teamId, isPublic: false, now: 1 });
      // In another order for each, so that they would wait for each other if they took them as they come.
      for (const alias of id === "p0" ? ["a", "b"] : ["b", "a"]) {
        await store().templates.putAlias({ namespace: `team-${id}`, alias, templateId: id, now: 1 });
      }
    }
    const change = (id: string, isPublic: boolean, claimsBareNames = true) =>
      ({ templateId: id, namespace: `team-${id}`, isPublic, claimsBareNames, now: 9 }) as const;
    const answers = await Promise.all(published.map((id, i) => stores[i % 2]?.templateVisibility.change(change(id, true))));
    expect(answers.filter((answer) => answer?.kind === "changed")).toHaveLength(1);
    expect(answers.filter((answer) => answer?.kind === "taken")).toHaveLength(AT_ONCE - 1);
    const winner = published[answers.findIndex((answer) => answer?.kind === "changed")] ?? "";
    for (const alias of ["a", "b"]) expect((await store().templates.findAlias({ namespace: "", alias }))?.id).toBe(winner);
    for (const id of published) {
      expect(await store().templates.findTemplate(id)).toMatchObject({ isPublic: id === winner, updatedAt: id === winner ? 9 : 1 });
    }
    await store().templateVisibility.change(change(winner, false));
    expect(await store().templates.findAlias({ namespace: "", alias: "a" })).toBeUndefined();
    expect(await store().templates.listAliases(winner)).toHaveLength(2);
    expect(await store().templateVisibility.change(change("nope", true))).toEqual({ kind: "not-found" });
    await store().templates.delete(winner, 10);
    expect(await store().templateVisibility.change(change(winner, true))).toEqual({ kind: "not-found" });
  });

  it("assignments of a tag from several processes are counted one after another, and none after the template was deleted", async () => {
    const teamId = await addTeam(store());
    const { templates, tags } = store();
    await templates.putTemplate({ id: "t1", teamId, isPublic: false, now: 1 });
    const builds = Array.from({ length: AT_ONCE }, () => newBuild("t1"));
    for (const build of builds) await templates.addBuild(build, "default");
    const stores = await both();
    await Promise.all(
      builds.map((build, i) => stores[i % 2]?.tags.assign({ templateId: "t1", buildId: build.id, tags: ["v1", "v2"], now: 20 + i })),
    );
    const history = await tags.pageAssignments("t1", "v1", { limit: 99 });
    expect(history.map(({ position }) => position)).toEqual([6, 5, 4, 3, 2, 1]);
    expect(new Set(history.map(({ buildId }) => buildId)).size).toBe(AT_ONCE);
    expect(await tags.pageAssignments("t1", "v1", { limit: 2, below: 3 })).toEqual(history.slice(4));
    expect(await tags.listAssignments("t1", ["v1", "v2", "v3"], 2)).toEqual([
      ...history.slice(0, 2),
      ...(await tags.pageAssignments("t1", "v2", { limit: 2 })),
    ]);
    const last = history[0]?.buildId ?? "";
    expect(await tags.assign({ templateId: "t1", buildId: last, tags: ["v1"], now: 40 })).toBe(true);
    expect(await tags.pageAssignments("t1", "v1", { limit: 99 })).toEqual(history);
    await tags.remove({ templateId: "t1", tags: ["v2"], now: 41 });
    expect((await tags.list("t1")).map(({ tag }) => tag).toSorted()).toEqual(["default", "v1"]);
    await templates.delete("t1", 50);
    expect(await tags.assign({ templateId: "t1", buildId: last, tags: ["v9"], now: 51 })).toBe(false);
    expect((await tags.list("t1")).map(({ tag }) => tag).toSorted()).toEqual(["default", "v1"]);
  });

  it("lists show the build that is served, the size of the latest one, and what became of it", async () => {
    const teamId = await addTeam(store());
    const { templates, templateLists } = store();
    await templates.putTemplate({ id: "t1", teamId, isPublic: false, isDefault: true, description: "one", now: 3 });
    await templates.putTemplate({ id: "t2", teamId, isPublic: false, now: 3 });
    await templates.putTemplate({ id: "t3", teamId, isPublic: false, now: 4 });
    const served = newBuild("t1", { createdAt: 5 });
    await templates.addBuild(served, "default");
    await templates.addBuild(newBuild("t1", { createdAt: 6, status: "error", cpuCount: 8 }), "default");
    await templates.addBuild(newBuild("t1", { createdAt: 7 }), "v1");
    const tagged = newBuild("t2", { createdAt: 8, cpuCount: 4 });
    await templates.addBuild(newBuild("t2", { createdAt: 7 }), "v1");
    await templates.addBuild(tagged, "v2");
    const [t1, t2, t3] = await templateLists.listOfTeam(teamId, 9);
    expect(t1).toMatchObject({ build: served, sizes: served, status: "error", buildCount: 3, template: { description: "one" } });
    expect(t2).toMatchObject({ build: undefined, sizes: tagged, status: undefined, buildCount: 2 });
    expect(t3).toMatchObject({ build: undefined, sizes: undefined, status: undefined, buildCount: 0, aliases: [] });
    const ids = (page: readonly { template: { id: string } }[]) => page.map(({ template }) => template.id);
    expect(ids(await templateLists.pageOfTeam(teamId, { limit: 2 }))).toEqual(["t3", "t1"]);
    expect(ids(await templateLists.pageOfTeam(teamId, { limit: 9, after: { createdAt: 3, id: "t1" } }))).toEqual(["t2"]);
    expect(ids(await templateLists.listDefault())).toEqual(["t1"]);
    expect((await templateLists.pageBuilds("t1", { limit: 9 })).map(({ createdAt }) => createdAt)).toEqual([7, 6, 5]);
    expect(await templateLists.pageBuilds("t1", { limit: 1, after: { createdAt: 6, id: "" } })).toHaveLength(1);
    expect(await templateLists.find("nope")).toBeUndefined();
  });
}
