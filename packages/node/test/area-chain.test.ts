// Chains of frozen areas, merged: however many files there are in them, for what was deleted, and what becomes of those that can't be.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "@skerry/base";
import { type DiskAreas, mountRootFilesystem, newAreaId, openDiskAreas, unmountRootFilesystem } from "@skerry/layers";
import { afterAll, afterEach, beforeEach, expect, it } from "vitest";
import { AreaChain } from "../src/areas/area-chain.privileged.ts";

const MIB = 2 ** 20;
const base = realpathSync(mkdtempSync("/var/tmp/skerry-chain-"));
afterAll(() => execFileSync("rm", ["-rf", base]));

let areas: DiskAreas;
const said: { fields: Record<string, unknown>; message: string }[] = [];
const note = (fields: object, message: string) => void said.push({ fields: fields as Record<string, unknown>, message });
const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
let dir = "";
const open = (reserveBytes = 0) => openDiskAreas({ dir, trash: base, limit: "file", ready: 0, reserveBytes });
beforeEach(() => {
  dir = mkdtempSync(join(base, "areas-"));
  areas = open();
  said.length = 0;
});
afterEach(async () => {
  await areas.stop();
  for (const id of areas.list()) await areas.destroy(id);
});

const identity = { sandboxId: "i1" };
const size = { cpuCount: 1, memoryMb: 256, diskSizeMb: 64 };
/** So small that every chain holds most of it. */
const tiny = { ...size, diskSizeMb: 0.01 };
/** A chain of this length, each made above the ones before, as a sandbox would. */
async function chainOf(length: number, write: (root: string, at: number) => unknown): Promise<string[]> {
  const chain: string[] = [];
  for (let at = 0; at < length; at += 1) {
    const { id, upper, work } = await areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 });
    areas.charge(id, chain);
    const target = mkdtempSync(join(base, "root-"));
    const bottom = join(base, "bottom");
    mkdirSync(bottom, { recursive: true });
    const layers = [bottom, ...chain.map((each) => areas.paths(each).upper)];
    // Forced: a process that is just starting anywhere on this machine may have a copy of a mount that is gone here.
    mountRootFilesystem({ layers, upper, work, target }, { force: true });
    try {
      write(target, at);
    } finally {
      unmountRootFilesystem(target);
    }
    await areas.freeze(id);
    chain.push(id);
  }
  return chain;
}

it("takes more files than an area of its size in blocks would", async () => {
  const chain = await chainOf(2, (root, at) => {
    // What makes it worthwhile.
    if (at === 0) writeFileSync(join(root, "big"), Buffer.alloc(8 * MIB, 1));
    else execFileSync("rm", [join(root, "big")]);
    mkdirSync(join(root, `of-${at}`));
    for (let file = 0; file < 4500; file += 1) writeFileSync(join(root, `of-${at}`, String(file)), "");
  });
  const [merged = "", ...more] = await new AreaChain(areas, logger).shortened({ identity, frozenAreas: chain, size: tiny });
  expect(more).toEqual([]);
  for (const at of [0, 1]) expect(readdirSync(join(areas.paths(merged).upper, `of-${at}`)).length).toBe(4500);
});

it("is merged when it holds most of the size, and what was deleted comes back", async () => {
  const steps = [
    (root: string) => writeFileSync(join(root, "big"), Buffer.alloc(55 * MIB, 1)),
    (root: string) => {
      execFileSync("rm", [join(root, "big")]);
      writeFileSync(join(root, "small"), "kept");
    },
  ];
  const chain = await chainOf(2, (root, at) => steps[at]?.(root));
  expect(areas.ownBytes(chain)).toBeGreaterThan(55 * MIB);
  const chains = new AreaChain(areas, logger);
  expect(await chains.shortened({ identity, frozenAreas: chain.slice(0, 1), size })).toEqual(chain.slice(0, 1));
  const [merged = "", ...more] = await chains.shortened({ identity, frozenAreas: chain, size });
  expect(more).toEqual([]);
  expect(areas.ownBytes([merged])).toBeLessThan(MIB);
  expect(existsSync(join(areas.paths(merged).upper, "small"))).toBe(true);
});

it("that would give little back is not copied, however often it is looked at", async () => {
  const chains = new AreaChain(areas, logger);
  const chain = await chainOf(18, (root, at) => at < 2 && writeFileSync(join(root, String(at)), Buffer.alloc(25 * MIB, 1)));
  for (let length = 2; length < 18; length += 1) {
    const shorter = chain.slice(0, length);
    expect(await chains.shortened({ identity, frozenAreas: shorter, size })).toEqual(shorter);
  }
  expect(said).toEqual([]);
  expect(areas.list().sort()).toEqual([...chain].sort());
});

it("that can't be merged stays as it is, is tried again much later, and costs the log one short line", async () => {
  const chain = await chainOf(18, () => {});
  // The disk has room for nothing new.
  const full = new AreaChain(open(2 ** 52), logger);
  for (let length = 2; length < 18; length += 1) {
    const shorter = chain.slice(0, length);
    expect(await full.shortened({ identity, frozenAreas: shorter, size: tiny })).toEqual(shorter);
  }
  expect(said).toMatchObject([{ message: "frozen areas could not be merged" }]);
  await full.shortened({ identity, frozenAreas: chain, size: tiny });
  expect(said.length).toBe(2);
  expect(areas.list().sort()).toEqual([...chain].sort());
});

it("of many sandboxes that lie on the same area is each merged in its own time, and soon after something was deleted", async () => {
  const chain = await chainOf(3, (root, at) => {
    if (at < 2) writeFileSync(join(root, `big-${at}`), Buffer.alloc(8 * MIB, 1));
    else execFileSync("rm", ["-r", ...readdirSync(root).map((name) => join(root, name))]);
  });
  const chains = new AreaChain(areas, logger);
  const pair = chain.slice(0, 2);
  // Nothing of it was deleted, for either.
  for (const sandboxId of ["i1", "i2"])
    expect(await chains.shortened({ identity: { sandboxId }, frozenAreas: pair, size: tiny })).toEqual(pair);
  // One area more has what was.
  expect(await chains.shortened({ identity, frozenAreas: chain, size: tiny })).toHaveLength(1);
});
