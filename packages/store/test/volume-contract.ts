import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { NewVolume } from "../src/index.ts";
import { addTeam, BY, newSandbox, type StoreContext } from "./store-contract.ts";

const ROOM = { max: 10, maxMb: null };

export function volumeContract({ store, another }: StoreContext): void {
  const newVolume = (teamId: string, name: string, sizeMb = 100): NewVolume => ({
    id: randomUUID(),
    teamId,
    name,
    nodeId: "node1",
    sizeMb,
    owner: "api1/run",
    createdAt: 1_000,
  });
  const add = async (teamId: string, name: string) => {
    const volume = newVolume(teamId, name);
    expect(await store().volumes.add(volume, ROOM)).toEqual({ kind: "added" });
    expect(await store().volumes.markReady(volume.id, 1_100)).toBe(true);
    return volume;
  };
  const mountOf = ({ id: volumeId, name }: NewVolume, path = "/v") => ({ volumeId, name, path });

  it("names a volume once in its team, and frees the name with its deletion", async () => {
    const [teamId, other] = [await addTeam(store()), await addTeam(store())];
    const volume = newVolume(teamId, "data");
    await store().volumes.add(volume, ROOM);
    expect(await store().volumes.find(teamId, volume.id)).toBeUndefined();
    expect(await store().volumes.add(newVolume(teamId, "data"), ROOM)).toEqual({ kind: "taken" });
    expect(await store().volumes.add(newVolume(other, "data"), ROOM)).toEqual({ kind: "added" });
    await store().volumes.markReady(volume.id, 1_100);
    expect(await store().volumes.find(teamId, volume.id)).toMatchObject({ ...volume, state: "ready" });
    expect(await store().volumes.find(other, volume.id)).toBeUndefined();
    expect(await store().volumes.findOwned(volume.id)).toMatchObject({ id: volume.id, team: { id: teamId } });
    expect(await store().volumes.abandon(volume.id, 1_200)).toBe(false);
    expect(await store().volumes.remove(teamId, volume.id, { force: false, now: 1_300 })).toMatchObject({ kind: "removed" });
    expect(await store().volumes.remove(teamId, volume.id, { force: true, now: 1_300 })).toEqual({ kind: "missing" });
    await add(teamId, "data");
    expect(await store().volumes.listUnsettled("deleting", 9)).toMatchObject([{ id: volume.id }]);
    await store().volumes.forget(volume.id);
    expect(await store().volumes.listUnsettled("deleting", 9)).toEqual([]);
  });

  it("counts volumes and their sizes, by several processes at once", async () => {
    const teamId = await addTeam(store());
    const second = await another();
    const at = (number: number) => (number % 2 ? store() : second).volumes.add(newVolume(teamId, `v${number}`), { max: 3, maxMb: null });
    const added = await Promise.all(Array.from({ length: 8 }, (_, number) => at(number)));
    expect(added.filter(({ kind }) => kind === "added")).toHaveLength(3);
    expect(added.filter(({ kind }) => kind === "limit")).toHaveLength(5);
    expect((await store().limits.useOfTeam(teamId)).volumes).toEqual({ count: 3, sizeMb: 300 });
    const tooLarge = store().volumes.add(newVolume(teamId, "large"), { max: 9, maxMb: 399 });
    await expect(tooLarge).rejects.toMatchObject({ code: "limit_reached", detailCode: "volumeMb" });
    expect(await store().volumes.add(newVolume(teamId, "fits"), { max: 9, maxMb: 400 })).toEqual({ kind: "added" });
  });

  it("keeps a volume while a sandbox that mounts it has not ended", async () => {
    const teamId = await addTeam(store());
    const volume = await add(teamId, "data");
    const sandbox = newSandbox(teamId, { volumeMounts: [mountOf(volume), mountOf(volume, "/w")] });
    await store().sandboxes.insert(sandbox, BY);
    expect((await store().sandboxes.find(sandbox.id))?.volumeMounts).toEqual(sandbox.volumeMounts);
    const remove = (force = false) => store().volumes.remove(teamId, volume.id, { force, now: 2_000 });
    expect(await remove()).toMatchObject({ kind: "mounted", sandboxes: 1 });
    await store().sandboxes.transition(sandbox.id, { from: "starting", to: "killing", event: "kill", now: 30, ...BY });
    expect(await remove()).toMatchObject({ kind: "mounted" });
    await store().sandboxes.transition(sandbox.id, { from: "killing", to: "ended", event: "gone", now: 40, ...BY });
    expect(await remove()).toMatchObject({ kind: "removed" });
  });

  it("adds no sandbox whose volume is being deleted, or belongs to another team", async () => {
    const [teamId, other] = [await addTeam(store()), await addTeam(store())];
    const [volume, foreign] = [await add(teamId, "data"), await add(other, "data")];
    const insert = (mounted: NewVolume) => {
      const sandbox = newSandbox(teamId, { volumeMounts: [mountOf(mounted)] });
      return store().sandboxes.insert(sandbox, BY);
    };
    await expect(insert(foreign)).rejects.toMatchObject({ code: "volume_gone" });
    // Of a deletion and a create at the same time, one comes first.
    const second = await another();
    const [created, removed] = await Promise.allSettled([
      insert(volume),
      second.volumes.remove(teamId, volume.id, { force: false, now: 2_000 }),
    ]);
    const kind = removed.status === "fulfilled" ? removed.value.kind : removed.reason;
    expect(kind).toBe(created.status === "fulfilled" ? "mounted" : "removed");
    expect(await store().volumes.filterReady(teamId, [volume.id, foreign.id])).toEqual(new Set(kind === "mounted" ? [volume.id] : []));
    expect((await store().volumes.findNamed(other, ["data", "none"])).map(({ id }) => id)).toEqual([foreign.id]);
  });

  it("keeps a team that has volumes", async () => {
    const teamId = await addTeam(store());
    const volume = await add(teamId, "data");
    expect(await store().teams.remove(teamId, 50)).toEqual({ sandboxes: 0, templates: 0, volumes: 1 });
    await store().volumes.remove(teamId, volume.id, { force: false, now: 60 });
    expect(await store().teams.remove(teamId, 70)).toBe("removed");
    await expect(store().volumes.add(newVolume(teamId, "late"), ROOM)).rejects.toMatchObject({ code: "team_deleted" });
  });
}
