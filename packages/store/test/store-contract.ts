// What every database must do the same. Run on each by store.test.ts.

import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Build, NewImage, NewSandbox, Store } from "../src/index.ts";

export interface StoreContext {
  /** The store of this test: empty at its start. */
  readonly store: () => Store;
  /** Another connection to the same database, as another process has it. */
  readonly another: () => Promise<Store>;
}

let ids = 0;

export function nextId(): string {
  ids += 1;
  return `i${String(ids).padStart(20, "0")}`;
}

export async function addTeam(store: Store, slug = `team-${randomUUID().slice(0, 8)}`): Promise<string> {
  const id = randomUUID();
  await store.identity.putTeam({ id, slug, name: slug, createdAt: 1 });
  return id;
}

export function newSandbox(teamId: string, fields: Partial<NewSandbox> = {}): NewSandbox {
  return {
    id: nextId(),
    teamId,
    templateId: "tpl",
    buildId: "b",
    alias: "base",
    nodeId: "node1",
    nodeUrl: "http://node1",
    owner: "api1",
    createdAt: 1_000,
    metadata: null,
    cpuCount: 2,
    memoryMb: 512,
    diskSizeMb: 1024,
    options: {},
    autoPause: false,
    autoPauseMemory: true,
    autoResume: false,
    timeoutMs: 300_000,
    volumeMounts: [],
    ...fields,
  };
}

export const BY = { actor: "key:test" } as const;

export async function addRunning(
  store: Store,
  teamId: string,
  fields: Partial<NewSandbox> & { startedAt?: number; endAt?: number } = {},
): Promise<string> {
  const { startedAt = 2_000, endAt = 10_000, ...rest } = fields;
  const sandbox = newSandbox(teamId, rest);
  await store.sandboxes.insert(sandbox, BY);
  const start = { startedAt, endAt, runtime: "gvisor", agentVersion: "0.6.4" };
  expect(await store.sandboxes.start(sandbox.id, { ...start, ...BY })).toMatchObject({ id: sandbox.id, state: "running", ...start });
  return sandbox.id;
}

export function newBuild(templateId: string, fields: Partial<Build> = {}): Build {
  return {
    id: randomUUID(),
    templateId,
    status: "ready",
    cpuCount: 2,
    memoryMb: 512,
    diskSizeMb: 0,
    layers: ["sha256:a", "sha256:b"],
    defaultUser: "user",
    defaultWorkdir: "/home/user",
    agentVersion: "0.6.4",
    createdAt: 5,
    image: null,
    ...fields,
  };
}

export function identityContract({ store }: StoreContext): void {
  const key = (hash: string, name = "k") => ({
    id: randomUUID(),
    name,
    hash,
    mask: { length: 40, prefix: "ab", suffix: "cdef" },
    createdAt: 1,
  });

  it("finds the team of a key by its hash, and remembers when it was used", async () => {
    const teamId = await addTeam(store(), "slugged");
    await store().identity.addApiKey({ ...key("h1"), teamId });
    const owner = await store().identity.findKeyOwner("h1");
    expect(owner).toMatchObject({ team: { id: teamId, slug: "slugged" }, lastUsedAt: null, expiresAt: null });
    await store().identity.touch("api_keys", owner?.keyId ?? "", 77);
    expect((await store().identity.findKeyOwner("h1"))?.lastUsedAt).toBe(77);
    expect(await store().identity.findKeyOwner("h2")).toBeUndefined();
  });

  it("writes a use only when the recorded one is older than asked", async () => {
    const teamId = await addTeam(store());
    const added = key("h");
    await store().identity.addApiKey({ ...added, teamId });
    for (const [at, unlessSince, recorded] of [
      [100, 41, 100],
      [150, 91, 100],
      [160, 101, 160],
    ] as const) {
      await store().identity.touch("api_keys", added.id, at, unlessSince);
      expect((await store().identity.findKeyOwner("h"))?.lastUsedAt).toBe(recorded);
    }
  });

  it("drops a replaced key of the secrets file and keeps all others, whatever their names", async () => {
    const teamId = await addTeam(store());
    const { identity } = store();
    await identity.addApiKey({ ...key("old", "one"), teamId, isSeeded: true });
    await identity.addApiKey({ ...key("new", "two"), teamId, isSeeded: true });
    await identity.addApiKey({ ...key("mine", "one"), teamId });
    await identity.dropOtherSeededKeys({ teamId, hash: "new" });
    expect(await identity.findKeyOwner("old")).toBeUndefined();
    expect(await identity.findKeyOwner("new")).toBeDefined();
    expect(await identity.findKeyOwner("mine")).toBeDefined();
  });

  it("lists, renames and removes the keys of one team only", async () => {
    const [teamId, other] = [await addTeam(store()), await addTeam(store())];
    const { identity, keys } = store();
    const [first, second] = [key("h1", "first"), { ...key("h2", "second"), createdAt: 2, expiresAt: 9 }];
    await identity.addApiKey({ ...second, teamId, createdBy: "u" });
    await identity.addApiKey({ ...first, teamId });
    await identity.addApiKey({ ...key("h3"), teamId: other });
    const unlimited = { scopes: null, sandboxMetadata: null, memberId: null, lastUsedAt: null };
    expect(await keys.listOfTeam(teamId)).toEqual([
      { id: first.id, name: "first", mask: first.mask, createdAt: 1, createdBy: null, expiresAt: null, ...unlimited },
      { id: second.id, name: "second", mask: second.mask, createdAt: 2, createdBy: "u", expiresAt: 9, ...unlimited },
    ]);
    expect(await keys.rename(other, first.id, { name: "taken", now: 5 })).toBe(false);
    expect(await keys.rename(teamId, first.id, { name: "renamed", now: 5 })).toBe(true);
    expect(await keys.removeKey(other, first.id, 5)).toBe(false);
    expect(await keys.removeKey(teamId, second.id, 5)).toBe(true);
    expect(await keys.removeKey(teamId, second.id, 5)).toBe(false);
    expect(await keys.listOfTeam(teamId)).toMatchObject([{ id: first.id, name: "renamed" }]);
    expect(await identity.findKeyOwner("h1")).toMatchObject({ expiresAt: null });
    expect(await identity.findKeyOwner("h2")).toBeUndefined();
  });

  it("keeps a deleted key or token of the secrets file deleted when it is added again", async () => {
    const teamId = await addTeam(store());
    const { identity, keys } = store();
    await identity.putUser({ id: "u", name: "U", createdAt: 1 });
    const [seeded, token] = [key("seeded"), key("token")];
    const add = async () => {
      await identity.addApiKey({ ...seeded, teamId, isSeeded: true });
      await identity.addAccessToken({ ...token, userId: "u", isSeeded: true });
    };
    await add();
    expect(await keys.removeKey(teamId, seeded.id, 5)).toBe(true);
    expect(await keys.removeToken("other", token.id, 5)).toBe(false);
    expect(await keys.removeToken("u", token.id, 5)).toBe(true);
    await add();
    expect(await identity.findKeyOwner("seeded")).toBeUndefined();
    expect(await identity.findTokenUser("token")).toBeUndefined();
    expect(await keys.listOfTeam(teamId)).toEqual([]);
    expect(await keys.rename(teamId, seeded.id, { name: "x", now: 5 })).toBe(false);
    expect(await keys.removeKey(teamId, seeded.id, 5)).toBe(false);
  });

  it("lists a user's teams with the default one first", async () => {
    const [first, second] = [await addTeam(store()), await addTeam(store())];
    await store().identity.putUser({ id: "u", name: "U", createdAt: 1 });
    await store().identity.putMembership({ teamId: first, userId: "u", isDefault: false });
    await store().identity.putMembership({ teamId: second, userId: "u", isDefault: true });
    await store().identity.addAccessToken({ ...key("t"), userId: "u" });
    expect(await store().identity.findTokenUser("t")).toEqual({
      tokenId: expect.any(String),
      mask: key("t").mask,
      userId: "u",
      expiresAt: null,
      scopes: null,
      lastUsedAt: null,
    });
    expect((await store().identity.listMemberships("u")).map(({ team }) => team.id)).toEqual([second, first]);
  });
}

export function templateContract({ store }: StoreContext): void {
  it("serves the newest ready build of a tag", async () => {
    const teamId = await addTeam(store());
    await store().templates.putTemplate({ id: "t1", teamId, isPublic: true, now: 1 });
    const [first, second, unready] = [newBuild("t1"), newBuild("t1"), newBuild("t1", { status: "building" })];
    for (const build of [first, second, unready]) expect(await store().templates.addBuild(build, "default")).toBe(true);
    expect(await store().templates.findTaggedBuild("t1", "default")).toEqual(second);
    expect(await store().templates.findTaggedBuild("t1", "v2")).toBeUndefined();
    expect(await store().templates.findBuild("t1", first.id)).toEqual(first);
    expect(await store().templates.findBuild("t2", first.id)).toBeUndefined();
  });

  it("changes nothing when a build is added again", async () => {
    const teamId = await addTeam(store());
    await store().templates.putTemplate({ id: "t1", teamId, isPublic: true, now: 1 });
    const [first, second] = [newBuild("t1"), newBuild("t1")];
    await store().templates.addBuild(first, "default");
    await store().templates.addBuild(second, "default");
    expect(await store().templates.addBuild(first, "default")).toBe(false);
    expect((await store().templates.findTaggedBuild("t1", "default"))?.id).toBe(second.id);
  });

  it("finds templates by names in namespaces, and counts the sandboxes that began", async () => {
    const teamId = await addTeam(store());
    await store().templates.putTemplate({ id: "t1", teamId, isPublic: false, now: 1 });
    await store().templates.putAlias({ namespace: "", alias: "base", templateId: "t1", now: 2 });
    await store().templates.putAlias({ namespace: "acme", alias: "mine", templateId: "t1", now: 3 });
    const id = await addRunning(store(), teamId, { templateId: "t1", startedAt: 9 });
    expect(await store().sandboxes.start(id, { startedAt: 10, endAt: 11, runtime: "", agentVersion: "", ...BY })).toBeUndefined();
    expect(await store().templates.findAlias({ namespace: "", alias: "mine" })).toBeUndefined();
    expect(await store().templates.findAlias({ namespace: "acme", alias: "mine" })).toMatchObject({ id: "t1", isPublic: false });
    const [listed] = await store().templateLists.listOfTeam(teamId, 9);
    expect(listed).toMatchObject({ template: { spawnCount: 1, lastSpawnedAt: 9 }, buildCount: 0, build: undefined });
    expect(listed?.aliases).toEqual([
      { namespace: "", alias: "base" },
      { namespace: "acme", alias: "mine" },
    ]);
  });

  it("says which layers builds of templates and of sandboxes need", async () => {
    const teamId = await addTeam(store());
    const { templates } = store();
    expect(await templates.neededLayers()).toEqual(new Set());
    for (const [id, layers] of Object.entries({ t1: ["a", "b"], t2: ["b", "c"] })) {
      await templates.putTemplate({ id, teamId, isPublic: false, now: 1 });
      await templates.addBuild(newBuild(id, { layers }), "default");
    }
    // Superseded, and it can still be named.
    await templates.addBuild(newBuild("t1", { layers: ["d"] }), "default");
    expect(await templates.neededLayers()).toEqual(new Set(["a", "b", "c", "d"]));
    const used = await templates.findTaggedBuild("t2", "default");
    await addRunning(store(), teamId, { id: "i9", templateId: "t2", buildId: used?.id ?? "" });
    await templates.delete("t1", 9);
    await templates.delete("t2", 9);
    expect(await templates.neededLayers()).toEqual(new Set(["b", "c"]));
    await templates.putTemplate({ id: "t1", teamId, isPublic: false, now: 10 });
    expect(await templates.neededLayers()).toEqual(new Set(["a", "b", "c", "d"]));
  });

  it("hides what is deleted, frees its names, and lets go of its images", async () => {
    const teamId = await addTeam(store());
    const { templates, images } = store();
    await templates.putTemplate({ id: "t1", teamId, isPublic: false, now: 1 });
    await templates.putAlias({ namespace: "acme", alias: "mine", templateId: "t1", now: 1 });
    await images.insert(newImage(teamId, "img"));
    const image = { id: "img", hasMemory: true, nodeId: "node1", sourceSandboxId: "i1" };
    const build = newBuild("t1", { image });
    await templates.addBuild(build, "default");
    expect(await templates.delete("t1", 9)).toBe(true);
    expect(await templates.delete("t1", 9)).toBe(false);
    expect(await templates.findTemplate("t1")).toBeUndefined();
    expect(await templates.findAlias({ namespace: "acme", alias: "mine" })).toBeUndefined();
    expect(await store().templateLists.listOfTeam(teamId, 9)).toEqual([]);
    expect(await templates.findAnyBuild(build.id)).toEqual(build);
    expect(await images.find("img")).toMatchObject({ state: "deleting", stateChangedAt: 9 });
    await templates.putTemplate({ id: "t1", teamId, isPublic: false, now: 10 });
    expect(await templates.findTemplate("t1")).toBeDefined();
  });
}

export function newImage(teamId: string, id: string, fields: Partial<NewImage> = {}): NewImage {
  const sandboxId = "i1";
  return { id, teamId, nodeId: "node1", sandboxId, kind: "snapshot", owner: "api1", hasMemory: true, createdAt: 1, ...fields };
}
