import { expect, it } from "vitest";
import type { SandboxLimits } from "../src/index.ts";
import { addRunning, addTeam, BY, newImage, newSandbox, type StoreContext } from "./store-contract.ts";

const NONE: SandboxLimits = { sandboxes: null, cpu: null, memoryMb: null, diskMb: null };

export function limitContract({ store, another }: StoreContext): void {
  const insert = async (teamId: string, limits: Partial<SandboxLimits>) =>
    await store().sandboxes.insert(newSandbox(teamId), { ...BY, limits: { ...NONE, ...limits } });
  const refused = (name: string) => expect.objectContaining({ code: "limit_reached", detailCode: name });

  it("keeps a team's processors, memory and disks below their limits, each by itself", async () => {
    const teamId = await addTeam(store());
    const { cpuCount, memoryMb, diskSizeMb } = newSandbox(teamId);
    await insert(teamId, {});
    await insert(teamId, { sandboxes: 2, cpu: 2 * cpuCount, memoryMb: 2 * memoryMb, diskMb: 2 * diskSizeMb });
    await expect(insert(teamId, { sandboxes: 2 })).rejects.toEqual(refused("sandboxes"));
    await expect(insert(teamId, { cpu: 3 * cpuCount - 1 })).rejects.toEqual(refused("cpu"));
    await expect(insert(teamId, { memoryMb: 3 * memoryMb - 1 })).rejects.toEqual(refused("memoryMb"));
    await expect(insert(teamId, { diskMb: 3 * diskSizeMb - 1 })).rejects.toEqual(refused("diskMb"));
    await expect(insert(teamId, { sandboxes: 0 })).rejects.toEqual(refused("sandboxes"));
    await insert(teamId, { sandboxes: 3, cpu: 3 * cpuCount, memoryMb: 3 * memoryMb, diskMb: 3 * diskSizeMb });
    expect(await store().limits.useOfTeam(teamId)).toEqual({
      running: { count: 3, cpuCount: 3 * cpuCount, memoryMb: 3 * memoryMb, diskSizeMb: 3 * diskSizeMb },
      diskMb: 3 * diskSizeMb,
      builds: 0,
      snapshots: 0,
      volumes: { count: 0, sizeMb: 0 },
    });
  });

  it("counts the disk of a paused sandbox, and neither its processors nor the disk once more when it is resumed", async () => {
    const teamId = await addTeam(store());
    const { cpuCount, diskSizeMb } = newSandbox(teamId);
    const id = await addRunning(store(), teamId);
    await store().sandboxes.transition(id, { from: "running", to: "pausing", event: "pause", now: 20, ...BY });
    await store().sandboxes.transition(id, { from: "pausing", to: "paused", event: "paused", now: 30, ...BY });
    await expect(insert(teamId, { diskMb: 2 * diskSizeMb - 1 })).rejects.toEqual(refused("diskMb"));
    await insert(teamId, { sandboxes: 1, cpu: cpuCount });
    const resume = { from: "paused", to: "resuming", event: "resume", now: 50, ...BY } as const;
    const tooMany = store().sandboxes.transition(id, { ...resume, limits: { ...NONE, cpu: 2 * cpuCount - 1 } });
    await expect(tooMany).rejects.toEqual(refused("cpu"));
    const limits = { ...NONE, cpu: 2 * cpuCount, diskMb: 1 };
    expect(await store().sandboxes.transition(id, { ...resume, limits })).toMatchObject({ state: "resuming" });
  });

  it("counts snapshots that are taken or being taken, by several processes at once", async () => {
    const teamId = await addTeam(store());
    const ids = await Promise.all(Array.from({ length: 6 }, () => addRunning(store(), teamId)));
    const second = await another();
    const take = async (id: string, at: number) => {
      const image = newImage(teamId, `image-${id}`, { sandboxId: id, kind: "snapshot" });
      const change = { from: "running", to: "snapshotting", event: "snapshot", now: 20, ...BY, maxSnapshots: 2 } as const;
      return await (at % 2 ? store() : second).sandboxes.transition(id, { ...change, image: { kind: "begin", image } });
    };
    const taken = await Promise.allSettled(ids.map(take));
    expect(taken.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    const kept = ids.filter((_, at) => taken[at]?.status === "fulfilled");
    expect((await store().limits.useOfTeam(teamId)).snapshots).toBe(2);
    const [first = ""] = kept;
    await store().images.drop(`image-${first}`, 30);
    const [left = ""] = ids.filter((id) => !kept.includes(id));
    expect(await take(left, 0)).toMatchObject({ state: "snapshotting" });
  });

  it("keeps the limits of tiers and of teams", async () => {
    const { limits } = store();
    const teamId = await addTeam(store());
    expect(await limits.ofTeam(teamId)).toEqual({ tier: undefined, overrides: {} });
    await limits.putTier({ name: "pro", limits: { sandboxes: 5, snapshots: null } }, 10);
    await limits.putTier({ name: "pro", limits: { sandboxes: 6, snapshots: null } }, 11);
    await limits.putTier({ name: "free", limits: {} }, 12);
    expect(await limits.listTiers()).toEqual([
      { name: "free", limits: {} },
      { name: "pro", limits: { sandboxes: 6, snapshots: null } },
    ]);
    expect(await limits.putOfTeam(teamId, { tier: "none", overrides: {}, now: 20 })).toBe(false);
    expect(await limits.putOfTeam(teamId, { tier: "pro", overrides: { cpu: 4 }, now: 20 })).toBe(true);
    expect(await limits.ofTeam(teamId)).toEqual({
      tier: { name: "pro", limits: { sandboxes: 6, snapshots: null } },
      overrides: { cpu: 4 },
    });
    expect(await limits.deleteTier("pro")).toBe("used");
    expect(await limits.putOfTeam(teamId, { tier: undefined, overrides: {}, now: 30 })).toBe(true);
    expect(await limits.deleteTier("pro")).toBe("deleted");
    expect(await limits.deleteTier("pro")).toBe("unknown");
  });
}
