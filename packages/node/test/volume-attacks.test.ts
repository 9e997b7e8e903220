// Attacks on the boundary of a volume. A hostile guest can put anything into a volume and change it at any time, so the files of the mounted
// volume are changed here as a guest on runc could change them, and faster.

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { scaled } from "@skerry/testkit/depth";
import { waitUntil } from "@skerry/testkit/wait-until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";
import { codeOf, VolumeScene } from "./volumes-under-test.ts";

let under: NodeUnderTest;
let scene: VolumeScene;
let outside: string;
beforeAll(async () => {
  under = await startNode("runc");
  scene = new VolumeScene(under);
  outside = join(under.config.dir, "outside");
  mkdirSync(join(outside, "below"), { recursive: true });
  writeFileSync(join(outside, "secret"), "a secret of the host", { mode: 0o600 });
});
afterAll(() => under?.[Symbol.asyncDispose]());

/** The files of a volume on the host. */
const filesOf = (volumeId: string) => join(under.config.dir, "volumes", volumeId, "fs/data");
const list = async (volumeId: string, path: string, depth = 1) => {
  const found: string[] = [];
  for await (const { entries } of under.client.listVolumeDirectory({ volumeId, path, depth }))
    found.push(...entries.map((entry) => entry.path));
  return found;
};
/** Everything that callers can do with a path. */
const operations = (volumeId: string, path: string): Record<string, () => Promise<unknown>> => {
  const at = { volumeId, path };
  return {
    read: () => scene.read(volumeId, path),
    write: () => scene.write(volumeId, path, "overwritten"),
    stat: () => under.client.statVolumeEntry(at),
    list: () => list(volumeId, path, 5),
    make: () => under.client.makeVolumeDirectory({ ...at, force: true }),
    set: () => under.client.setVolumeEntry({ ...at, metadata: { uid: 4321, mode: 0o777 } }),
    remove: () => under.client.removeVolumeEntry(at),
  };
};
const expectUntouched = () => {
  expect(readdirSync(outside).sort()).toEqual(["below", "secret"]);
  expect(readdirSync(join(outside, "below"))).toEqual([]);
  expect(readFileSync(join(outside, "secret"), "utf8")).toBe("a secret of the host");
  expect([statSync(outside).uid, statSync(join(outside, "secret")).uid, statSync(join(outside, "secret")).mode & 0o777]).toEqual([
    0, 0, 0o600,
  ]);
};

it("follows no link out of a volume, whoever put it there", async () => {
  const volume = await scene.newVolume();
  const id = await scene.create(volume);
  const up = "../".repeat(30);
  await scene.run(
    id,
    `cd /data; ln() { busybox ln -s "$@"; }; ln ${outside} absolute; ln ${up}${outside.slice(1)} relative; ln /proc/self/root magic; ln loop loop
     mkdir in; echo inside > in/file; ln in/file good; ln ../in/file in/good; ln /data/in/file as-the-guest-sees-it`,
  );
  expect([await scene.read(volume, "/good"), await scene.read(volume, "/in/good")]).toEqual(["inside\n", "inside\n"]);
  for (const link of ["absolute", "relative", "magic", "loop"]) {
    for (const path of [`${link}/secret`, `${link}/below/new`]) {
      for (const [name, operation] of Object.entries(operations(volume, path)))
        expect(await codeOf(operation()), `${name} ${path}`).toBe("path_invalid");
    }
    expect(await codeOf(scene.read(volume, link)), link).toBe("path_invalid");
    expect(await codeOf(list(volume, link)), link).toBe("path_invalid");
    expect(await codeOf(under.client.setVolumeEntry({ volumeId: volume, path: link, metadata: { uid: 1 } })), link).toBe("path_invalid");
    expect((await scene.stat(volume, link))?.type).toBe("symlink");
  }
  expect(await codeOf(scene.read(volume, "as-the-guest-sees-it"))).toBe("path_invalid");
  // A link itself is replaced and removed, never what it leads to.
  await scene.write(volume, "absolute", "a file now");
  await under.client.removeVolumeEntry({ volumeId: volume, path: "relative" });
  expect((await scene.stat(volume, "absolute"))?.type).toBe("file");
  for (const path of ["..", "/../secret", "in/../../x", "a\0b", ""])
    expect(await codeOf(scene.read(volume, path)), path).toBe("path_invalid");
  expectUntouched();
  await under.client.killSandbox({ sandboxId: id });
  await under.client.deleteVolume({ volumeId: volume });
});

it("opens no device and no FIFO, and lets neither devices nor set-id programs work in a sandbox", async () => {
  const volume = await scene.newVolume();
  const sandboxes = [await scene.create(volume), await scene.create(volume, { runtime: "gvisor" })];
  execFileSync("mknod", ["-m", "666", join(filesOf(volume), "disk"), "b", "7", "0"]);
  execFileSync("mkfifo", [join(filesOf(volume), "fifo")]);
  execFileSync("cp", ["/bin/busybox", join(filesOf(volume), "id")]);
  execFileSync("chmod", ["4755", join(filesOf(volume), "id")]);
  for (const path of ["disk", "fifo"]) {
    expect(await codeOf(scene.read(volume, path)), path).toBe("not_a_file");
    expect(await codeOf(under.client.setVolumeEntry({ volumeId: volume, path, metadata: { mode: 0o777 } })), path).toBe("not_a_file");
    expect((await scene.stat(volume, path))?.type).toBe("unknown");
  }
  for (const id of sandboxes) {
    expect(await scene.run(id, "dd if=/data/disk of=/dev/null bs=512 count=1 || echo refused", { user: "root" })).toContain("refused");
    expect(await scene.run(id, "busybox mknod /data/mine b 7 0 || echo refused", { user: "root" })).toContain("refused");
    expect(await scene.run(id, "busybox ln -s /data/id /tmp/id; /tmp/id -u")).toBe("1000");
    await under.client.killSandbox({ sandboxId: id });
  }
  await under.client.deleteVolume({ volumeId: volume });
});

/** Exchanges `dir` and a link again and again, until it is terminated. */
const SWAPPING = `const koffi = require("koffi"); const { workerData: [root] } = require("node:worker_threads");
const exchange = koffi.load("libc.so.6").func("int renameat2(int a, const char *from, int b, const char *to, unsigned int flags)");
for (;;) exchange(-100, root + "/dir", -100, root + "/link", 2);`;

it("loses no race against a guest that swaps directories for links", async () => {
  const volume = await scene.newVolume();
  await scene.write(volume, "/dir/below/kept", "inside");
  const root = filesOf(volume);
  symlinkSync(outside, join(root, "link"));
  writeFileSync(join(root, "dir/secret"), "inside");
  const rounds = scaled("rounds of a race", { sample: 25, full: 400 });
  const worker = new Worker(SWAPPING, { eval: true, workerData: [root] });
  try {
    const seen = new Set<string>();
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, operation] of Object.entries({ ...operations(volume, "dir/secret"), ...operations(volume, "dir/below/new") })) {
        if (name === "remove" && round % 10 !== 0) continue;
        seen.add(`${name}: ${(await codeOf(operation())) ?? "done"}`);
      }
      const content = await scene.read(volume, "dir/secret").catch(() => "");
      expect(["", "inside", "overwritten"]).toContain(content);
    }
    // Both sides of the race were met.
    expect([...seen]).toEqual(expect.arrayContaining(["write: done", "write: path_invalid", "read: path_invalid"]));
    expect([...seen].filter((one) => /internal|undefined|machine/.test(one))).toEqual([]);
    expectUntouched();
  } finally {
    await worker.terminate();
  }
  await under.client.deleteVolume({ volumeId: volume });
  expectUntouched();
});

it("deletes trees of any depth in the background, with links out of them, while a guest still has them open", async () => {
  const volume = await scene.newVolume();
  const id = await scene.create(volume);
  await scene.run(
    id,
    `mkdir -p /data/tree; cd /data/tree; n=0; while test $n -lt 60; do mkdir d; cd d; busybox ln -s ${outside} out; echo x > f; n=$((n + 1)); done
     (while sleep 0.01; do echo x > more; mkdir -p again; busybox ln -sf ${outside} again/out; done) </dev/null >/dev/null 2>&1 &`,
  );
  await under.client.removeVolumeEntry({ volumeId: volume, path: "tree" });
  expect(await list(volume, "/", 3)).toEqual([]);
  expect(await scene.run(id, "ls /data")).toBe("");
  await under.client.killSandbox({ sandboxId: id });
  // What the guest added meanwhile goes with the next removal.
  await under.client.makeVolumeDirectory({ volumeId: volume, path: "again" });
  await under.client.removeVolumeEntry({ volumeId: volume, path: "again" });
  const trash = join(filesOf(volume), "../trash");
  await waitUntil("the tree is gone", () => readdirSync(trash).length === 0).catch(() =>
    expect(execFileSync("find", [trash]).toString().slice(0, 2000)).toBe(""),
  );
  expectUntouched();
  await under.client.deleteVolume({ volumeId: volume });
});
