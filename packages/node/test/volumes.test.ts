import { readFileSync } from "node:fs";
import { runtimesFor } from "@skerry/testkit/depth";
import { StartKind } from "@skerry/wire/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";
import { codeOf, MIB, VolumeScene } from "./volumes-under-test.ts";

/** Reads the open file line by line, each time that the file /tmp/go appears. */
const READER = `cd /data/dir; (exec 3</data/open; read line <&3; echo $line > /tmp/read
  while true; do if test -e /tmp/go; then read line <&3; echo $line > /tmp/read; busybox rm /tmp/go; fi; sleep 0.1; done) </dev/null >/dev/null 2>&1 &
  until test -s /tmp/read; do sleep 0.1; done`;

/** What another sandbox does, and why the memory is lost. gVisor itself ends when an open file has become something else. */
const CHANGES = [
  ["busybox rm /data/open", /^a process had "\/data\/open" open, which was removed from its volume/],
  ["busybox rm -r /data/dir", /^a process had "\/data\/dir" open, which was removed from its volume/],
  ["busybox rm /data/open; mkdir /data/open", /could not bring it back/],
  ["busybox rm /data/open; busybox mkfifo /data/open", /could not bring it back/],
] as const;

describe.each(runtimesFor("the volumes of a node"))("volumes on %s", (runtime) => {
  const keepsMemory = runtime === "gvisor";
  const other = { runtime: runtime === "gvisor" ? "runc" : "gvisor" };
  let under: NodeUnderTest;
  let scene: VolumeScene;
  beforeAll(async () => {
    under = await startNode(runtime);
    scene = new VolumeScene(under);
  });
  afterAll(() => under?.[Symbol.asyncDispose]());

  it("are one folder for sandboxes of both runtimes and for callers: same content, same owners, one size", async () => {
    const volume = await scene.newVolume();
    const [a, b] = [await scene.create(volume), await scene.create(volume, other)];
    expect(await scene.run(a, "echo one > /data/f && stat -c '%u:%g %a' /data/f")).toBe("1000:1000 644");
    expect(await scene.run(b, "cat /data/f && stat -c '%u:%g' /data/f && echo two >> /data/f")).toBe("one\n1000:1000");
    expect(await scene.run(a, "cat /data/f")).toBe("one\ntwo");
    expect(await scene.stat(volume, "f")).toMatchObject({ uid: 1000, gid: 1000, size: 8n, mode: 0o644 });
    expect(await scene.run(b, "mkdir /data/root && chmod 700 /data/root", { user: "root" })).toBe("");
    expect(await scene.stat(volume, "root")).toMatchObject({ uid: 0, gid: 0, type: "directory" });
    expect(await scene.run(a, "ls /data/root 2>&1 || echo refused")).toContain("refused");

    await scene.write(volume, "up", "from outside");
    expect(await scene.run(a, "cat /data/up; stat -c ' %u' /data/up; echo x > /data/up")).toBe("from outside 1000");
    expect(await scene.read(volume, "/up")).toBe("x\n");
    // Only one of two creates a directory: what programs without shared locks can use.
    const made = await Promise.all([a, b].map((id) => scene.run(id, "mkdir /data/lock 2>/dev/null && echo made || echo there")));
    expect(made.sort()).toEqual(["made", "there"]);

    const blocks = Number(await scene.run(a, "busybox df /data | busybox tail -n 1 | busybox awk '{ print $2 }'"));
    expect(blocks).toBeGreaterThanOrEqual(32 * 1024);
    expect(blocks).toBeLessThan(40 * 1024);
    expect(await scene.run(a, "dd if=/dev/zero of=/data/big bs=1M count=64 2>&1")).toContain("No space left on device");
    expect(await codeOf(scene.write(volume, "/more", Buffer.alloc(2 * MIB)))).toBe("volume_full");
    expect(
      await scene.run(b, "echo x > /tmp/own && busybox rm /data/big && dd if=/dev/zero of=/data/small bs=1M count=1 2>/dev/null"),
    ).toBe("");
    for (const id of [a, b]) await under.client.killSandbox({ sandboxId: id });
    expect(await scene.read(volume, "/f")).toBe("one\ntwo\n");
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(`${under.config.dir}/sandboxes/`);
    expect(await under.client.deleteVolume({ volumeId: volume })).toMatchObject({ existed: true });
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(`${under.config.dir}/volumes/${volume}`);
  });

  it("stay through pause, resume, snapshot, fork and the restart of the node", async () => {
    const volume = await scene.newVolume();
    const [id, writer] = [await scene.create(volume), await scene.create(volume, other)];
    await scene.run(id, "mkdir /data/dir; echo first > /data/open");
    await scene.run(id, READER);
    const image = await scene.pause(id);
    await scene.run(writer, "echo second >> /data/open");
    expect(await scene.resume(id, image, volume)).toMatchObject({
      startKind: keepsMemory ? StartKind.RESTORE : StartKind.BOOT,
      memoryLostReason: "",
    });
    if (keepsMemory) expect(await scene.run(id, "touch /tmp/go; while test -e /tmp/go; do sleep 0.1; done; cat /tmp/read")).toBe("second");
    expect(await scene.run(id, "cat /data/open")).toBe("first\nsecond");

    const snapshot = scene.newImageId();
    expect(await under.client.snapshotSandbox({ sandboxId: id, imageId: snapshot, memory: true })).toMatchObject({ memoryLostReason: "" });
    const fork = await scene.create(volume, { imageId: snapshot, accessToken: "b" });
    await scene.run(fork, "echo fork > /data/fork", { token: "b" });
    expect(await scene.run(id, "cat /data/fork && echo original > /data/original")).toBe("fork");
    await under.restart();
    expect(await scene.run(fork, "cat /data/original && echo restarted > /data/f", { token: "b" })).toBe("original");
    expect(await scene.run(id, "cat /data/f")).toBe("restarted");
    expect((await under.client.listVolumes({})).volumes.find(({ volumeId }) => volumeId === volume)?.sandboxIds.sort()).toEqual(
      [id, writer, fork].sort(),
    );
  });

  it("lose the memory of a paused sandbox, and nothing else, when others remove what it has open", async () => {
    const volume = await scene.newVolume();
    const [id, writer] = [await scene.create(volume), await scene.create(volume, other)];
    for (const [change, why] of CHANGES) {
      await scene.run(
        id,
        "rm -rf /data/open /data/dir; busybox rm -rf /data/open; mkdir -p /data/dir; echo first > /data/open; busybox rm -f /tmp/read",
      );
      await scene.run(id, `echo kept > /tmp/kept; ${READER}`);
      const image = await scene.pause(id);
      await scene.run(writer, change);
      const resumed = await scene.resume(id, image, volume);
      expect(resumed.startKind).toBe(StartKind.BOOT);
      if (keepsMemory) expect(resumed.memoryLostReason).toMatch(why);
      expect(await scene.run(id, "cat /tmp/kept && echo x > /data/usable")).toBe("kept");
    }
  });

  it("are deleted under sandboxes only by force: these get errors, and start again without them", async () => {
    const volume = await scene.newVolume();
    const [id, paused] = [await scene.create(volume), await scene.create(volume, other)];
    await scene.run(id, "echo x > /data/f");
    const image = await scene.pause(paused);
    expect(await codeOf(under.client.deleteVolume({ volumeId: volume }))).toBe("volume_in_use");
    await under.client.deleteVolume({ volumeId: volume, force: true });
    expect(await scene.run(id, "{ echo y > /data/g; } 2>/dev/null || echo failed; echo alive")).toBe("failed\nalive");
    const resumed = await scene.resume(paused, image, volume);
    expect(resumed).toMatchObject({
      startKind: StartKind.BOOT,
      memoryLostReason: keepsMemory ? "" : "it does not have the volumes that it had when its memory was saved",
    });
    expect(await scene.run(paused, "ls /data")).toBe("");
    // Again: now it is saved without the volume.
    const again = await scene.pause(paused);
    expect(await scene.resume(paused, again, volume)).toMatchObject({ memoryLostReason: "" });
  });
});
