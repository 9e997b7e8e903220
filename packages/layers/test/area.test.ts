import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { chooseDiskLimit, type DiskArea, type DiskAreas, newAreaId, openDiskAreas, unmountRootFilesystem } from "@skerry/layers";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { loopDevices } from "../src/area/loop-device.privileged.ts";
import { mountPatiently } from "./mount-patiently.ts";

const MIB = 1024 * 1024;
// Never a memory file system: what is tested are disks.
const base = realpathSync(mkdtempSync("/var/tmp/skerry-area-"));
const base2 = join(base, "layer");
mkdirSync(join(base2, "etc"), { recursive: true });
writeFileSync(join(base2, "etc/name"), "base");
writeFileSync(join(base2, "etc/gone"), "base");

let dir = "";
let areas: DiskAreas;
const open = (more: { limit?: "file" | "none"; ready?: number; reserveBytes?: number } = {}): DiskAreas => {
  mkdirSync(`${dir}-trash`, { recursive: true });
  return openDiskAreas({ dir, trash: `${dir}-trash`, limit: "file", ready: 0, reserveBytes: 0, ...more });
};
let count = 0;
beforeEach(() => {
  count += 1;
  dir = join(base, `areas${count}`);
  areas = open();
});

const overlays: string[] = [];
afterEach(async () => {
  for (const target of overlays.splice(0)) unmountRootFilesystem(target);
  await areas.stop();
  for (const id of areas.list()) await areas.destroy(id);
  // A device stays for as long as a process of anybody's, which was just starting, has the mounts of before.
  await expect.poll(() => remains(dir)).toEqual({ files: [], mounts: [], devices: [] });
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** Everything on this machine that comes from an area below `path`. */
function remains(path: string) {
  return {
    files: existsSync(path) ? readdirSync(path) : [],
    mounts: readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .filter((line) => line.includes(`${path}/`)),
    devices: loopDevices().filter(({ backingFile }) => backingFile.startsWith(`${path}/`)),
  };
}

function overlay(area: DiskArea, layers: readonly string[] = [base2]): string {
  const target = mkdtempSync(join(base, "root-"));
  mountPatiently({ layers, upper: area.upper, work: area.work, target });
  overlays.push(target);
  return target;
}

function unmountOverlay(target: string): void {
  unmountRootFilesystem(target);
  overlays.splice(overlays.indexOf(target), 1);
}

/** Writes until the disk says no. Answers the bytes that went in, and what it said. */
function fill(file: string): { bytes: number; code: string | undefined } {
  const fd = openSync(file, "w");
  const chunk = Buffer.alloc(MIB, 1);
  let bytes = 0;
  try {
    for (;;) bytes += writeSync(fd, chunk);
  } catch (error) {
    return { bytes, code: (error as NodeJS.ErrnoException).code };
  } finally {
    closeSync(fd);
  }
}

/** Splits what was allocated and not written, too far apart to be filled with zeros: what that takes comes out of what ext4 holds back. */
function dipIntoReserve(filler: string): void {
  const file = join(filler, "big");
  execFileSync("/bin/sh", ["-c", 'fallocate -l 100M "$1"; cat /dev/zero > "$1.rest"; true', "sh", file], { stdio: "ignore" });
  const fd = openSync(file, "r+");
  for (let at = 0; at < 100 * MIB; at += 72 * 1024) writeSync(fd, "x", at);
  fsyncSync(fd);
  closeSync(fd);
}

describe("a limited area", () => {
  it("shows its size through the overlay, and is full when it is full, and only then", async () => {
    const [own, other] = await Promise.all([
      areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 }),
      areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 }),
    ]);
    const root = overlay(own);
    const { blocks, bsize } = statfsSync(root);
    expect((blocks * bsize) / MIB).toBeGreaterThanOrEqual(64);
    expect((blocks * bsize) / MIB).toBeLessThan(66);
    const { bytes, code } = fill(join(root, "big"));
    expect(code).toBe("ENOSPC");
    expect(bytes / MIB).toBeGreaterThanOrEqual(61);
    expect(bytes / MIB).toBeLessThan(66);
    expect(readFileSync(join(root, "etc/name"), "utf8")).toBe("base");
    writeFileSync(join(other.upper, "file"), Buffer.alloc(MIB));
    unlinkSync(join(root, "big"));
    writeFileSync(join(root, "again"), Buffer.alloc(8 * MIB));
  });

  it("is one file system with the layers for who looks at it, and files keep their numbers when they are changed", async () => {
    const root = overlay(await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 }));
    const file = join(root, "etc/name");
    const before = statSync(file);
    writeFileSync(file, "changed");
    writeFileSync(join(root, "new"), "");
    expect(statSync(file).ino).toBe(before.ino);
    const devices = [root, join(root, "etc"), file, join(root, "etc/gone"), join(root, "new")].map((path) => statSync(path).dev);
    expect(new Set([...devices, before.dev]).size).toBe(1);
  });

  it("is a sound file system with an identity of its own, though all of a size begin alike", async () => {
    const ids = [newAreaId(), newAreaId(), newAreaId()];
    const identities: string[] = [];
    for (const id of ids) {
      await areas.create(id, { sizeMb: 300, ownerId: 0 });
      await areas.close(id);
      execFileSync("e2fsck", ["-f", "-n", join(dir, id, "image")], { stdio: "pipe" });
      const about = execFileSync("dumpe2fs", ["-h", join(dir, id, "image")], { encoding: "utf8", stdio: "pipe" });
      identities.push(/UUID: +(\S+)/.exec(about)?.[1] ?? "", /Hash Seed: +(\S+)/.exec(about)?.[1] ?? "");
    }
    expect(new Set(identities).size).toBe(6);
  });

  it("gives the machine back what is deleted in it", async () => {
    const area = await areas.create(newAreaId(), { sizeMb: 256, ownerId: 0 });
    const before = (await areas.hostBytes(area.id)) ?? 0;
    writeFileSync(join(area.upper, "big"), Buffer.alloc(100 * MIB, 1));
    await areas.sync(area.id);
    expect(((await areas.hostBytes(area.id)) ?? 0) - before).toBeGreaterThan(99 * MIB);
    unlinkSync(join(area.upper, "big"));
    await areas.sync(area.id);
    await expect.poll(async () => ((await areas.hostBytes(area.id)) ?? 0) - before).toBeLessThan(8 * MIB);
  });

  it("belongs to whom it was made for, is closed to the machine's users, and runs set-user-id programs", async () => {
    const area = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 300_000 });
    expect([statSync(area.upper).uid, statSync(area.work).gid]).toEqual([300_000, 300_000]);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    const options = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .find((line) => line.includes(dir))
      ?.split(" ")[3];
    expect(options).toContain("nodev");
    expect(options).not.toContain("nosuid");
  });

  it("is refused when the machine's disk is nearly full, and leaves nothing", async () => {
    const full = open({ reserveBytes: 2 ** 52 });
    await expect(full.create(newAreaId(), { sizeMb: 16, ownerId: 0 })).rejects.toMatchObject({ code: "disk_space_unavailable" });
    expect(full.list()).toEqual([]);
    await expect(full.assertRoom()).rejects.toMatchObject({ code: "disk_space_unavailable" });
    await full.assertRoom({ isUnderWay: true });
    // Unless whoever asks can't go back.
    await full.destroy((await full.create(newAreaId(), { sizeMb: 16, ownerId: 0, isDue: true })).id);
  });

  it.each([7, -1, 1.5, 2 ** 40])("can't have %d MiB", async (sizeMb) => {
    await expect(areas.create(newAreaId(), { sizeMb, ownerId: 0 })).rejects.toThrow(RangeError);
    expect(areas.list()).toEqual([]);
  });
});

describe("an area that a guest has filled", () => {
  /** In its own folders a guest could do the same. */
  const used = (area: DiskArea) => {
    const filler = join(area.upper, "filler");
    mkdirSync(filler);
    return filler;
  };
  const FILLED: [string, number, (filler: string) => void][] = [
    ["to the last block", 16, (filler) => fill(join(filler, "big"))],
    ["into what the file system keeps for itself", 128, dipIntoReserve],
    [
      "with files, to the last one",
      16,
      (filler) =>
        expect(() => Array.from({ length: 10_000 }, (_, index) => writeFileSync(join(filler, String(index)), ""))).toThrow(/ENOSPC/),
    ],
  ];
  it.each(FILLED)("%s, is mounted for writing again and again, and has room when something is deleted", async (_how, sizeMb, fillUp) => {
    const area = await areas.create(newAreaId(), { sizeMb, ownerId: 0 });
    unmountOverlay(overlay(area));
    fillUp(used(area));
    for (let round = 0; round < 5; round += 1) {
      await areas.close(area.id);
      await areas.open(area.id);
      const root = areas.withRoom(area.id, () => overlay(area));
      expect(() => {
        for (;;) appendFileSync(join(root, "filler/more"), Buffer.alloc(MIB));
      }).toThrow(/ENOSPC/);
      unmountOverlay(root);
    }
    const root = areas.withRoom(area.id, () => overlay(area));
    rmSync(join(root, "filler"), { recursive: true });
    writeFileSync(join(root, "again"), Buffer.alloc(MIB));
  });

  it("is never mounted for reading only without an error", async () => {
    const area = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    // Somebody else's immutable work directory: the kernel can't make its own, and falls back.
    mkdirSync(join(area.work, "work"));
    execFileSync("chattr", ["+i", area.work]);
    try {
      expect(() => overlay(area)).toThrow(expect.objectContaining({ code: "root_read_only" }));
    } finally {
      execFileSync("chattr", ["-i", area.work]);
    }
  });

  it("or that the kernel has made read-only, is mounted for writing when it is opened", async () => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    execFileSync("mount", ["-o", "remount,ro", join(dir, id, "fs")]);
    expect(() => writeFileSync(join(upper, "file"), "")).toThrow(/EROFS/);
    await areas.open(id);
    writeFileSync(join(upper, "file"), "");
    // It may turn out only when an overlay is to be mounted on it.
    execFileSync("mount", ["-o", "remount,ro", join(dir, id, "fs")]);
    await areas.remount(id);
    writeFileSync(join(upper, "file"), "again");
    expect(readFileSync(join(upper, "file"), "utf8")).toBe("again");
  });
});

describe("an area above others", () => {
  it("has what they hold within its size, and whoever looks sees that", async () => {
    const sizeMb = 64;
    const lower: string[] = [];
    const shown = (path: string) => {
      const { blocks, bavail, bsize } = statfsSync(path);
      return { total: (blocks * bsize) / MIB, free: (bavail * bsize) / MIB };
    };
    for (const freeMb of [64, 44, 24, 4]) {
      const area = await areas.create(newAreaId(), { sizeMb, ownerId: 0 });
      areas.charge(area.id, lower);
      const root = overlay(area, [...lower.map((id) => areas.paths(id).upper), base2].reverse());
      expect(shown(root).total).toBeGreaterThanOrEqual(sizeMb);
      expect(shown(root).free).toBeGreaterThan(freeMb - 4);
      expect(shown(root).free).toBeLessThan(freeMb + 2);
      // It takes nothing of the machine's disk.
      await areas.sync(area.id);
      expect(await areas.hostBytes(area.id)).toBeLessThan(6 * MIB);
      if (freeMb > 20) writeFileSync(join(root, `of-${freeMb}`), Buffer.alloc(20 * MIB, 1));
      else expect(fill(join(root, "rest"))).toMatchObject({ code: "ENOSPC" });
      unmountOverlay(root);
      await areas.freeze(area.id);
      lower.push(area.id);
    }
    // As full as it can be: there is a last bit of room, with which something can be deleted.
    const last = await areas.create(newAreaId(), { sizeMb, ownerId: 0 });
    areas.charge(last.id, lower);
    const root = overlay(last, [...lower.map((id) => areas.paths(id).upper), base2].reverse());
    expect(shown(root).free).toBeLessThan(1.1);
    unlinkSync(join(root, "of-64"));
    unmountOverlay(root);
  });

  it("counts anew when others lie below", async () => {
    const [lower, area] = await Promise.all([1, 2].map(() => areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 })));
    if (!lower || !area) throw new Error("two were made");
    writeFileSync(join(lower.upper, "file"), Buffer.alloc(30 * MIB, 1));
    const free = () => (statfsSync(area.upper).bavail * statfsSync(area.upper).bsize) / MIB;
    const before = free();
    areas.charge(area.id, [lower.id]);
    expect(Math.round(before - free())).toBe(30);
    areas.charge(area.id, []);
    expect(Math.round(before - free())).toBe(0);
  });
});

describe("a frozen area", () => {
  it("is a layer of several sandboxes, which see the same and write apart, and nothing is copied", async () => {
    const first = await areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 });
    const root = overlay(first);
    writeFileSync(join(root, "etc/name"), "first");
    unlinkSync(join(root, "etc/gone"));
    unmountOverlay(root);
    await areas.freeze(first.id);
    expect(() => writeFileSync(join(first.upper, "late"), "")).toThrow(/EROFS/);
    const forks = await Promise.all([1, 2].map(() => areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 })));
    const roots = forks.map((area) => overlay(area, [base2, first.upper]));
    for (const [index, fork] of roots.entries()) {
      expect(readFileSync(join(fork, "etc/name"), "utf8")).toBe("first");
      expect(existsSync(join(fork, "etc/gone"))).toBe(false);
      writeFileSync(join(fork, "etc/name"), `fork ${index}`);
    }
    expect(roots.map((fork) => readFileSync(join(fork, "etc/name"), "utf8"))).toEqual(["fork 0", "fork 1"]);
    expect(readFileSync(join(first.upper, "etc/name"), "utf8")).toBe("first");
    for (const fork of forks) expect(await areas.hostBytes(fork.id)).toBeLessThan(2 * MIB);
  });

  it("is frozen at once, with much of it not on the disk yet", async () => {
    const area = await areas.create(newAreaId(), { sizeMb: 512, ownerId: 0 });
    writeFileSync(join(area.upper, "big"), Buffer.alloc(200 * MIB, 1));
    await areas.freeze(area.id);
    expect(await areas.hostBytes(area.id)).toBeLessThan(200 * MIB);
    await areas.close(area.id);
    expect(await areas.hostBytes(area.id)).toBeGreaterThan(200 * MIB);
  });

  it("opened as a layer can't be written to, however it was mounted before", async () => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    writeFileSync(join(upper, "file"), "kept");
    const refused = () => expect(() => writeFileSync(join(upper, "late"), "")).toThrow(/EROFS/);
    await areas.open(id, { readOnly: true });
    refused();
    await areas.close(id);
    await areas.open(id, { readOnly: true });
    refused();
    expect(readFileSync(join(upper, "file"), "utf8")).toBe("kept");
  });
});

describe("an area's life", () => {
  it("may be over before somebody closes it who had that in mind", async () => {
    for (const sizeMb of [32, 0]) {
      const { id } = await areas.create(newAreaId(), { sizeMb, ownerId: 0 });
      await areas.destroy(id);
      await expect(areas.close(id)).resolves.toBeUndefined();
    }
  });

  it("keeps what is in it while it is closed, and over the end of the process", async () => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 32, ownerId: 0 });
    writeFileSync(join(upper, "file"), "kept");
    await areas.close(id);
    await expect.poll(() => remains(dir)).toMatchObject({ mounts: [], devices: [] });
    expect(existsSync(upper)).toBe(false);
    const next = open();
    expect(next.list()).toEqual([id]);
    expect((await next.open(id)).upper).toBe(upper);
    await next.open(id);
    expect(readFileSync(join(upper, "file"), "utf8")).toBe("kept");
    writeFileSync(join(upper, "more"), "1");
    expect(remains(dir)).toMatchObject({ mounts: { length: 1 }, devices: { length: 1 } });
  });

  it("is mounted once, however many ask for it at the same time", async () => {
    const { id } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    await areas.close(id);
    await Promise.all(Array.from({ length: 8 }, () => areas.open(id, { readOnly: true })));
    expect(remains(dir)).toMatchObject({ mounts: { length: 1 }, devices: { length: 1 } });
  });

  it.each([false, true])("gets its device back while another mount namespace still holds it (readOnly: %s)", async (readOnly) => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    writeFileSync(join(upper, "file"), "kept");
    const holder = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 60"]);
    try {
      await once(holder.stdout, "data");
      await areas.close(id);
      expect(remains(dir)).toMatchObject({ mounts: [], devices: { length: 1 } });
      await areas.open(id, { readOnly });
      expect(remains(dir)).toMatchObject({ mounts: { length: 1 }, devices: { length: 1 } });
      expect(readFileSync(join(upper, "file"), "utf8")).toBe("kept");
      if (readOnly) expect(() => writeFileSync(join(upper, "late"), "")).toThrow(/EROFS/);
    } finally {
      await end(holder);
    }
  });

  it("that is read-only is mounted for writing as soon as no other mount namespace holds it any more", async () => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    execFileSync("mount", ["-o", "remount,ro", join(dir, id, "fs")]);
    const holder = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 60"]);
    try {
      await once(holder.stdout, "data");
      await Promise.all([areas.remount(id), delay(200).then(() => end(holder))]);
      writeFileSync(join(upper, "file"), "");
    } finally {
      await end(holder);
    }
  });

  it("is whole after a power loss, with all that was synced", async () => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 });
    writeFileSync(join(upper, "synced"), Buffer.alloc(5 * MIB, 7));
    await areas.sync(id);
    for (let index = 0; index < 500; index += 1) writeFileSync(join(upper, `unsynced-${index}`), "later");
    const after = newAreaId();
    mkdirSync(join(dir, after, "fs"), { recursive: true });
    execFileSync("cp", ["--sparse=always", join(dir, id, "image"), join(dir, after, "image")]);
    const found = await areas.open(after, { readOnly: true });
    expect(readFileSync(join(found.upper, "synced")).equals(Buffer.alloc(5 * MIB, 7))).toBe(true);
    await areas.close(after);
    execFileSync("e2fsck", ["-f", "-n", join(dir, after, "image")], { stdio: "pipe" });
  });

  it("that isn't here can't be opened, and is destroyed without complaint", async () => {
    const { id } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    await areas.destroy(id);
    await areas.destroy(id);
    await expect(areas.open(id)).rejects.toMatchObject({ code: "area_missing" });
  });

  it("ends without waiting for what was not written yet, also with an overlay on it", async () => {
    const area = await areas.create(newAreaId(), { sizeMb: 512, ownerId: 0 });
    const root = overlay(area);
    writeFileSync(join(root, "big"), Buffer.alloc(200 * MIB, 1));
    await areas.destroy(area.id);
    expect(() => writeFileSync(join(root, "more"), "1")).toThrow();
    unmountOverlay(root);
    expect(remains(dir)).toEqual({ files: [], mounts: [], devices: [] });
  });

  it("without a limit is a plain tree, and goes to the trash", async () => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 0, ownerId: 0 });
    writeFileSync(join(upper, "file"), "1");
    await areas.freeze(id);
    await areas.close(id);
    await open({ limit: "none" }).open(id, { readOnly: true });
    expect(await areas.hostBytes(id)).toBeUndefined();
    await areas.destroy(id);
    expect(existsSync(join(`${dir}-trash`, id, "fs/u/file"))).toBe(true);
  });

  it("with a limit survives a change of the setting", async () => {
    const { id, upper } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    await areas.close(id);
    const unlimited = open({ limit: "none", ready: 4 });
    await unlimited.open(id);
    expect(statfsSync(upper).blocks * statfsSync(upper).bsize).toBeLessThan(32 * MIB);
    const plain = await unlimited.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    expect(statfsSync(plain.upper).blocks * statfsSync(plain.upper).bsize).toBe(statfsSync(base).blocks * statfsSync(base).bsize);
    await unlimited.destroy(plain.id);
  });
});

describe("prepared areas", () => {
  it("are not kept for a size that nobody asks for again", async () => {
    const pooled = open({ ready: 2 });
    const { id } = await pooled.create(newAreaId(), { sizeMb: 37, ownerId: 0, isOnlyOne: true });
    await pooled.prepared();
    expect(remains(dir)).toMatchObject({ files: [id], mounts: { length: 1 } });
    await pooled.stop();
  });

  it("are handed out, replaced, in no list, and gone after the end", async () => {
    const pooled = open({ ready: 3 });
    pooled.prepare(32);
    await pooled.prepared();
    expect(remains(dir)).toMatchObject({ mounts: { length: 3 } });
    expect(pooled.list()).toEqual([]);
    const taken = await Promise.all([1, 2, 3, 4].map((ownerId) => pooled.create(newAreaId(), { sizeMb: 32, ownerId })));
    expect(new Set(taken.map(({ id }) => id)).size).toBe(4);
    expect(taken.map(({ upper }) => statSync(upper).uid)).toEqual([1, 2, 3, 4]);
    expect(pooled.list().sort()).toEqual(taken.map(({ id }) => id).sort());
    await pooled.prepared();
    await pooled.stop();
    expect(remains(dir)).toMatchObject({ mounts: { length: 4 } });
  });

  it("8 at once, 200 in all, leave nothing", async () => {
    const pooled = open({ ready: 8 });
    const worker = async () => {
      for (let round = 0; round < 25; round += 1) {
        const { id, upper } = await pooled.create(newAreaId(), { sizeMb: 64, ownerId: 0 });
        writeFileSync(join(upper, "file"), Buffer.alloc(MIB));
        await pooled.destroy(id);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    await pooled.stop();
    expect(remains(dir)).toEqual({ files: [], mounts: [], devices: [] });
  });
});

describe("after kill -9", () => {
  const MAKER = `
    import { newAreaId, openDiskAreas } from "@skerry/layers";
    import { writeFileSync } from "node:fs";
    const [dir] = process.argv.slice(1);
    const areas = openDiskAreas({ dir, trash: dir + "-trash", limit: "file", ready: 2, reserveBytes: 0 });
    process.stdout.write("begin\\n");
    for (;;) {
      const { id, upper } = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
      writeFileSync(upper + "/file", "1");
      await areas.close(id);
      await areas.open(id, { readOnly: true });
      await areas.destroy(id);
    }`;

  it("at any point, everything is found and given back", async () => {
    for (let round = 0; round < 12; round += 1) {
      const args = ["--input-type=module", "--eval", MAKER, dir];
      const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ["ignore", "pipe", "inherit"] });
      await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
      expect(child.exitCode).toBe(null);
      await delay(20 + round * 13);
      await end(child);
      const next = open();
      for (const id of next.list()) await next.destroy(id);
      expect(remains(dir)).toEqual({ files: [], mounts: [], devices: [] });
    }
  });

  it("half-made ones are removed whatever there is of them", async () => {
    const ids = ["a", "b", "c", "d"].map((letter) => letter.repeat(24));
    const [empty, unformatted, fileless, twice] = ids.map((id) => join(dir, id));
    for (const own of [empty, unformatted, fileless, twice]) mkdirSync(own ?? "");
    for (const own of [unformatted, fileless, twice]) mkdirSync(`${own}/fs`);
    for (const own of [unformatted, twice]) {
      writeFileSync(`${own}/image`, "");
      truncateSync(`${own}/image`, 32 * MIB);
    }
    execFileSync("mkfs.ext4", ["-q", "-F", `${twice}/image`]);
    execFileSync("mount", ["-o", "loop", `${twice}/image`, `${twice}/fs`]);
    execFileSync("mount", ["--bind", `${twice}/fs`, `${twice}/fs`]);
    expect(areas.list().sort()).toEqual(ids);
    for (const id of areas.list()) await areas.destroy(id);
    expect(remains(dir)).toEqual({ files: [], mounts: [], devices: [] });
  });
});

describe("when the machine's own disk is full", () => {
  it("who writes hears of it, everybody else goes on, and destroying gives room again", async () => {
    const small = join(base, "small");
    mkdirSync(small);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=48m", "none", small]);
    const before = dir;
    try {
      dir = join(small, "areas");
      const tight = open();
      const [writer, victim] = await Promise.all([1, 2].map(() => tight.create(newAreaId(), { sizeMb: 256, ownerId: 0 })));
      const fd = openSync(join(writer?.upper ?? "", "big"), "w");
      const writeAll = () => {
        for (let written = 0; written < 64; written += 1) writeSync(fd, Buffer.alloc(MIB, 1));
        fsyncSync(fd);
      };
      expect(writeAll).toThrow(/ENOSPC|EIO|EROFS/);
      closeSync(fd);
      expect(readdirSync(victim?.upper ?? "")).toEqual([]);
      await tight.destroy(writer?.id ?? "");
      writeFileSync(join(victim?.upper ?? "", "file"), Buffer.alloc(8 * MIB));
      await tight.sync(victim?.id ?? "");
      await tight.destroy(victim?.id ?? "");
      expect(remains(dir)).toEqual({ files: [], mounts: [], devices: [] });
    } finally {
      dir = before;
      execFileSync("umount", ["-l", small]);
    }
  });
});

async function end(child: ChildProcess): Promise<void> {
  if (child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

describe("what limits disks", () => {
  it("is disk files where they work, found by trying, and nothing stays of that", async () => {
    expect(await chooseDiskLimit({ dir, setting: "auto" })).toEqual({ limit: "file" });
    expect(await chooseDiskLimit({ dir, setting: "file" })).toEqual({ limit: "file" });
    expect(await chooseDiskLimit({ dir, setting: "none" })).toEqual({ limit: "none" });
    expect(remains(dir)).toEqual({ files: [], mounts: [], devices: [] });
  });

  it("is nothing where they don't, with the reason, or an error where they were asked for", async () => {
    // A file system that has no room for the smallest one.
    const tiny = join(base, "tiny");
    mkdirSync(tiny);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "none", tiny]);
    try {
      const choice = await chooseDiskLimit({ dir: join(tiny, "areas"), setting: "auto" });
      expect(choice).toEqual({ limit: "none", missing: expect.stringMatching(/ENOSPC|EIO/) });
      await expect(chooseDiskLimit({ dir: join(tiny, "areas"), setting: "file" })).rejects.toMatchObject({ code: "config_invalid" });
      expect(readdirSync(join(tiny, "areas"))).toEqual([]);
    } finally {
      execFileSync("umount", ["-l", tiny]);
    }
  });
});
