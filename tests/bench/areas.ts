import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { type DiskAreas, newAreaId, openDiskAreas } from "@skerry/layers";
import { testCacheDir } from "@skerry/testkit";
import type { Bench, Row } from "./bench.ts";
import { availableMiB } from "./host-usage.ts";
import { distribution, timed } from "./statistics.ts";

const SIZE_MB = 10_240;
const ROUNDS = 30;
const AT_ONCE = 8;
const HELD = 100;
const MIB = 1024 * 1024;
const CHUNK = Buffer.alloc(MIB, 1);
const FLUSHES = 100;

/** The disk area of a sandbox alone: its share of a create, a pause, a resume and a kill. */
export const areas: Bench = {
  name: "areas",
  title: `Disk areas of ${SIZE_MB} MiB as disk files, alone; writes compared with a plain folder on the same disk`,
  async run() {
    const dir = realpathSync(mkdtempSync(join(testCacheDir(), "areas-")));
    const pooled = openDiskAreas({ dir: join(dir, "pooled"), trash: dir, limit: "file", ready: AT_ONCE });
    const unpooled = openDiskAreas({ dir: join(dir, "unpooled"), trash: dir, limit: "file", ready: 0 });
    try {
      const samples = new Samples();
      await measureLife(pooled, unpooled, samples);
      await measureWrites(unpooled, join(dir, "plain"), samples);
      return { rows: samples.rows(), notes: [await heldNote(unpooled)] };
    } finally {
      for (const each of [pooled, unpooled]) {
        await each.stop();
        for (const id of each.list()) await each.destroy(id);
      }
      rmSync(dir, { recursive: true, force: true });
    }
  },
};

class Samples {
  readonly #lists = new Map<string, number[]>();

  async time(name: string, work: () => Promise<unknown>): Promise<void> {
    const ms = await timed(work);
    this.#lists.set(name, [...(this.#lists.get(name) ?? []), ms]);
  }

  rows(): Row[] {
    return [...this.#lists].map(([name, samples]) => ({ name, unit: "ms", samples, ...distribution(samples) }));
  }
}

async function measureLife(pooled: DiskAreas, unpooled: DiskAreas, samples: Samples): Promise<void> {
  const size = { sizeMb: SIZE_MB, ownerId: 0 };
  const createAndDestroy = async (areas: DiskAreas) => {
    const id = newAreaId();
    await areas.create(id, size);
    await areas.destroy(id);
  };
  await samples.time("create, the first of its size", () => createAndDestroy(unpooled));
  for (let round = 0; round < ROUNDS; round += 1) {
    pooled.prepare(SIZE_MB);
    await pooled.prepared();
    const [first, second] = [newAreaId(), newAreaId()];
    await samples.time("create, prepared", () => pooled.create(first, size));
    await pooled.prepared();
    await samples.time("create, not prepared", () => unpooled.create(second, size));
    await write(join(pooled.paths(first).upper, "file"), 1);
    await samples.time("freeze", () => pooled.freeze(first));
    await samples.time("close, 1 MiB written", () => pooled.close(first));
    await samples.time("open as a layer", () => pooled.open(first, { readOnly: true }));
    await samples.time("destroy", () => pooled.destroy(first));
    await write(join(unpooled.paths(second).upper, "file"), 256);
    await samples.time("destroy, 256 MiB written", () => unpooled.destroy(second));
    const atOnce = (areas: DiskAreas) => Promise.all(Array.from({ length: AT_ONCE }, () => createAndDestroy(areas)));
    await samples.time(`create and destroy ${AT_ONCE} at once, prepared`, () => atOnce(pooled));
    await samples.time(`create and destroy ${AT_ONCE} at once, not prepared`, () => atOnce(unpooled));
  }
}

async function measureWrites(areas: DiskAreas, plain: string, samples: Samples): Promise<void> {
  const id = newAreaId();
  const { upper } = await areas.create(id, { sizeMb: SIZE_MB, ownerId: 0 });
  mkdirSync(plain);
  for (let round = 0; round < 5; round += 1) {
    for (const [name, dir] of [
      ["in an area", upper],
      ["in a plain folder", plain],
    ] as const) {
      await samples.time(`256 MiB written and flushed ${name}`, () => write(join(dir, "big"), 256, { flush: true }));
      await samples.time(`${FLUSHES} times 4 KiB written and flushed ${name}`, () => writeLog(join(dir, "log")));
      for (const file of ["big", "log"]) rmSync(join(dir, file));
    }
  }
}

async function write(path: string, sizeMb: number, { flush = false } = {}): Promise<void> {
  await using file = await open(path, "w");
  for (let written = 0; written < sizeMb; written += 1) await file.write(CHUNK);
  if (flush) await file.sync();
}

async function writeLog(path: string): Promise<void> {
  await using file = await open(path, "w");
  for (let index = 0; index < FLUSHES; index += 1) {
    await file.write(CHUNK.subarray(0, 4096));
    await file.sync();
  }
}

async function heldNote(areas: DiskAreas): Promise<string> {
  const ids = Array.from({ length: HELD }, () => newAreaId());
  const before = availableMiB();
  for (const id of ids) await areas.create(id, { sizeMb: SIZE_MB, ownerId: 0 });
  const memoryKib = ((before - availableMiB()) / HELD) * 1024;
  const hostBytes = (await areas.hostBytes(ids[0] ?? "")) ?? 0;
  return `${HELD} empty mounted areas take ${memoryKib.toFixed(0)} KiB of memory and ${(hostBytes / 1024).toFixed(0)} KiB of disk each`;
}
