// Volumes: files of a volume compared with the sandbox's own disk, through the content API compared with the files API, and many volumes.

import { type Platform, startPlatform } from "@skerry/testkit";
import { Sandbox, Volume } from "e2b";
import type { Bench, Measured } from "./bench.ts";
import { connection } from "./sdk.ts";
import { distribution, timed } from "./statistics.ts";

const ROUNDS = 5;
const TRANSFER_BYTES = 100 * 1000 * 1000;
const MANY = 100;
const VOLUME_MB = 2048;
const PLACES = [
  ["in a volume", "/data"],
  ["on the sandbox's disk", "/home/user"],
] as const;

/** Prints MB/s and operations per second of each kind, in this order: sequential write, sequential read, random write, random read. */
const PROGRAM = `
import os, random, sys, time
path = sys.argv[1] + "/bench"
size, block = 256 * 1024 * 1024, 1024 * 1024
data, small = os.urandom(block), os.urandom(4096)
def timed(work):
    start = time.monotonic(); work(); return time.monotonic() - start
def write():
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for _ in range(size // block): os.write(fd, data)
    os.fsync(fd); os.close(fd)
def read():
    fd = os.open(path, os.O_RDONLY)
    while os.read(fd, block): pass
    os.close(fd)
places = [4096 * random.randrange(size // 4096) for _ in range(10000)]
def random_write():
    fd = os.open(path, os.O_WRONLY)
    for place in places: os.pwrite(fd, small, place)
    os.fsync(fd); os.close(fd)
def random_read():
    fd = os.open(path, os.O_RDONLY)
    for place in places: os.pread(fd, 4096, place)
    os.close(fd)
seconds = [timed(work) for work in (write, read, random_write, random_read)]
print(*(size / 1e6 / s for s in seconds[:2]), *(len(places) / s for s in seconds[2:]))
os.unlink(path)
`;
const KINDS = [
  ["written and flushed", "MB/s"],
  ["read", "MB/s"],
  ["4 KiB written at random and flushed at the end", "1/s"],
  ["4 KiB read at random", "1/s"],
] as const;

export const volumes: Bench = {
  name: "volumes",
  title: "Volumes: files compared with the sandbox's own disk, transfers compared with the files API, and many volumes",
  async run() {
    const measured: Measured[] = [];
    const notes: string[] = [];
    for (const runtime of ["gvisor", "runc"] as const) {
      await using platform = await startPlatform({ runtime, env: { SKERRY_MAX_VOLUMES: String(MANY + 1) } });
      const own = [...(await files(platform)), ...(await many(platform)), ...(await starts(platform))];
      measured.push(...own.map(([name, unit, samples]): Measured => [`${name}, ${runtime}`, unit, samples]));
      notes.push(...ratios(runtime, own));
    }
    return { rows: measured.map(([name, unit, samples]) => ({ name, unit, ...distribution(samples), samples })), notes };
  },
};

const at = (platform: Platform) => ({ apiUrl: platform.apiUrl });

async function newVolume(platform: Platform, name: string): Promise<Volume> {
  const response = await fetch(`${platform.apiUrl}/volumes`, {
    method: "POST",
    headers: { "X-API-Key": platform.secrets.apiKey, "Content-Type": "application/json" },
    body: JSON.stringify({ name, sizeMB: VOLUME_MB }),
  });
  if (response.status !== 201) throw new Error(`creating a volume failed: ${await response.text()}`);
  return Volume.connect(((await response.json()) as { volumeID: string }).volumeID, connection(platform));
}

const sandboxWith = (platform: Platform, volume: Volume) =>
  Sandbox.create("base", { ...connection(platform), timeoutMs: 600_000, volumeMounts: { "/data": volume } });

async function files(platform: Platform): Promise<Measured[]> {
  const volume = await newVolume(platform, "files");
  const sandbox = await sandboxWith(platform, volume);
  await sandbox.files.write("/tmp/bench.py", PROGRAM);
  const samples = PLACES.map(() => KINDS.map((): number[] => []));
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [place, [, dir]] of PLACES.entries()) {
      const { stdout } = await sandbox.commands.run(`python3 /tmp/bench.py ${dir}`, { timeoutMs: 300_000 });
      const found = stdout.trim().split(" ").map(Number);
      if (round >= 0) for (const [kind, value] of found.entries()) samples[place]?.[kind]?.push(value);
    }
  }
  const rows = KINDS.flatMap(([kind, unit], index) =>
    PLACES.map(([place], which): Measured => [`256 MiB: ${kind}, ${place}`, unit, samples[which]?.[index] ?? []]),
  );
  const content = new Blob([Buffer.alloc(TRANSFER_BYTES, 1)]);
  const speeds = async (once: () => Promise<unknown>) => {
    const found: number[] = [];
    for (let round = -1; round < ROUNDS; round += 1) {
      const ms = await timed(once);
      if (round >= 0) found.push(TRANSFER_BYTES / 1e3 / ms);
    }
    return found;
  };
  rows.push([
    "100 MB up, content API",
    "MB/s",
    await speeds(() => volume.writeFile("/transfer", content, { ...at(platform), force: true })),
  ]);
  rows.push(["100 MB up, files API", "MB/s", await speeds(() => sandbox.files.write("/home/user/transfer", content))]);
  rows.push(["100 MB down, content API", "MB/s", await speeds(() => volume.readFile("/transfer", { ...at(platform), format: "bytes" }))]);
  rows.push(["100 MB down, files API", "MB/s", await speeds(() => sandbox.files.read("/home/user/transfer", { format: "bytes" }))]);
  await sandbox.kill();
  await Volume.destroy(volume.volumeId, connection(platform));
  return rows;
}

/** Creates many volumes and mounts each in the same sandbox's place, one after another: by its first use through the content API. */
async function many(platform: Platform): Promise<Measured[]> {
  const [created, used, deleted]: number[][] = [[], [], []];
  const made: Volume[] = [];
  for (let index = 0; index < MANY; index += 1)
    created?.push(await timed(async () => made.push(await newVolume(platform, `many-${index}`))));
  for (const volume of made) used?.push(await timed(() => volume.list("/", at(platform))));
  for (const { volumeId } of made) deleted?.push(await timed(() => Volume.destroy(volumeId, connection(platform))));
  return [
    [`one of ${MANY} volumes of ${VOLUME_MB} MiB: create`, "ms", created ?? []],
    ["  list its root", "ms", used ?? []],
    ["  delete", "ms", deleted ?? []],
  ];
}

/** A sandbox with a volume is booted; one without is claimed from the pool, or restored from its template's image. */
async function starts(platform: Platform): Promise<Measured[]> {
  const volume = await newVolume(platform, "starts");
  const [withVolume, without]: number[][] = [[], []];
  for (let round = 0; round < 2 * ROUNDS; round += 1) {
    for (const [samples, options] of [
      [withVolume, { volumeMounts: { "/data": volume } }],
      [without, {}],
    ] as const) {
      let sandbox: Sandbox | undefined;
      const ms = await timed(async () => {
        sandbox = await Sandbox.create("base", { ...connection(platform), ...options });
      });
      samples?.push(ms);
      await sandbox?.kill();
    }
  }
  await Volume.destroy(volume.volumeId, connection(platform));
  return [
    ["create of a sandbox with a volume", "ms", withVolume ?? []],
    ["  without", "ms", without ?? []],
  ];
}

function ratios(runtime: string, measured: readonly Measured[]): string[] {
  const p50 = (name: string) => distribution(measured.find(([candidate]) => candidate === name)?.[2] ?? []).p50;
  const [[inVolume], [onDisk]] = PLACES;
  const own = KINDS.map(([kind]) => [kind, `256 MiB: ${kind}, ${inVolume}`, `256 MiB: ${kind}, ${onDisk}`] as const);
  const transfers = ["up", "down"].map((way) => [`100 MB ${way}`, `100 MB ${way}, content API`, `100 MB ${way}, files API`] as const);
  return [...own, ...transfers].map(
    ([what, volume, other]) => `${runtime}: ${what}: ${(p50(volume) / p50(other)).toFixed(2)} times the other`,
  );
}
