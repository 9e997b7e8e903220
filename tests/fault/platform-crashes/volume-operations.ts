// Operations on volumes, each as the test of one crash point in it. A volume exists as a whole or not at all, a file is the old or the new
// one, and a running sandbox notices nothing.

import { randomUUID } from "node:crypto";
import type { CrashPoint } from "@skerry/node/crash-points";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Volume } from "e2b";
import { expect } from "vitest";
import { clientOf } from "../../e2e/client.ts";
import type { CrashingPlatform, Subject } from "./crashing-platform.ts";

interface Scene {
  readonly world: CrashingPlatform;
  readonly subject: Subject;
  readonly point: CrashPoint;
}

export const VOLUME_OPERATIONS = {
  "creation of a volume": async ({ world, subject, point }: Scene) => {
    const since = world.journalEnd(subject.id);
    const name = newName();
    const create = () => world.call("/volumes", { body: { name } });
    await world.crash(point, create);
    // What was cut off either counts, or its name is free again as soon as the platform has cleaned up.
    await waitUntil("the volume is there", async () => (await listed(world)).includes(name) || (await create()).status === 201);
    expect(await listed(world)).toEqual([name]);
    const volume = await volumeNamed(world, name);
    await volume.writeFile("/f", "it works", at(world));
    expect(await volume.readFile("/f", at(world))).toBe("it works");
    await remove(world, volume);
    expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  },
  "deletion of a volume": async ({ world, subject, point }: Scene) => {
    const since = world.journalEnd(subject.id);
    const volume = await newVolume(world);
    await volume.writeFile("/f", "to be deleted", at(world));
    await world.crash(point, () => world.call(`/volumes/${volume.volumeId}`, { method: "DELETE" }));
    await world.expectStatus(world.call(`/volumes/${volume.volumeId}`, { method: "DELETE" }), 204, 404);
    expect(await listed(world)).toEqual([]);
    await world.expectStatus(world.call("/volumes", { body: { name: volume.name } }), 201);
    const next = await volumeNamed(world, volume.name);
    expect(await next.list("/", at(world))).toEqual([]);
    await remove(world, next);
    expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  },
  "upload to a volume": async ({ world, subject, point }: Scene) => {
    const since = world.journalEnd(subject.id);
    const volume = await newVolume(world);
    await volume.writeFile("/f", "before", at(world));
    await world.crash(point, async () => {
      await volume.writeFile("/f", "after", { ...at(world), force: true });
      return undefined;
    });
    expect(await volume.readFile("/f", at(world))).toBe("before");
    await volume.writeFile("/f", "again", { ...at(world), force: true });
    expect(await volume.readFile("/f", at(world))).toBe("again");
    expect((await volume.list("/", at(world))).map(({ name }) => name)).toEqual(["f"]);
    await remove(world, volume);
    expect(await world.expectTold(subject, { since, answers: [] })).toBe(true);
  },
};

const newName = () => `v-${randomUUID()}`;
const at = ({ platform }: CrashingPlatform) => ({ apiUrl: platform.apiUrl });
const newVolume = ({ platform }: CrashingPlatform) => Volume.create(newName(), clientOf(platform));
const listed = async ({ platform }: CrashingPlatform) => (await Volume.list(clientOf(platform))).map(({ name }) => name);

async function volumeNamed({ platform }: CrashingPlatform, name: string): Promise<Volume> {
  const found = (await Volume.list(clientOf(platform))).find((volume) => volume.name === name);
  if (!found) throw new Error(`there is no volume ${name}`);
  return Volume.connect(found.volumeId, clientOf(platform));
}

async function remove(world: CrashingPlatform, { volumeId }: Volume): Promise<void> {
  await world.expectStatus(world.call(`/volumes/${volumeId}`, { method: "DELETE" }), 204);
}
