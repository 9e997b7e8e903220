// The part of the node contract about volumes: their life, their mounts, and their files. Links, devices and races are made inside of
// sandboxes; the tests of the real node try those.

import { randomUUID } from "node:crypto";
import { type Client, ConnectError } from "@connectrpc/connect";
import type { NodeErrorCode } from "@skerry/wire";
import { ErrorDetailSchema, type NodeService, StartKind } from "@skerry/wire/node";
import { expect, it } from "vitest";

const SIZE_BYTES = 32n * 1024n * 1024n;
const PIECE_BYTES = 256 * 1024;

interface VolumesNode {
  readonly client: Client<typeof NodeService>;
  readonly keepsMemory: boolean;
  newSandboxId(): string;
  newImageId(): string;
  create(sandboxId: string, overrides: { volumeMounts: { volumeId: string; path: string }[] }): Promise<unknown>;
  spec(sandboxId: string, overrides: object): object;
  pause(sandboxId: string, imageId: string): Promise<unknown>;
  kill(sandboxId: string): Promise<boolean>;
}

/** The code of the detail of a call that fails. */
async function detailOf(call: Promise<unknown>): Promise<NodeErrorCode | "none" | undefined> {
  return await call.then(
    () => undefined,
    (error: unknown) => (ConnectError.from(error).findDetails(ErrorDetailSchema)[0]?.code ?? "none") as NodeErrorCode,
  );
}

class Volume {
  readonly id = randomUUID();
  readonly client: Client<typeof NodeService>;
  constructor(client: Client<typeof NodeService>) {
    this.client = client;
  }

  static async create(client: Client<typeof NodeService>): Promise<Volume> {
    const volume = new Volume(client);
    expect(await client.createVolume({ volumeId: volume.id, sizeBytes: SIZE_BYTES })).toMatchObject({ created: true });
    return volume;
  }

  at(path: string) {
    return { volumeId: this.id, path };
  }

  async stat(path: string) {
    return (await this.client.statVolumeEntry(this.at(path))).entry;
  }

  async list(path: string, depth = 1): Promise<string[]> {
    const found: string[] = [];
    for await (const { entries } of this.client.listVolumeDirectory({ ...this.at(path), depth })) found.push(...entries.map((e) => e.path));
    return found.sort();
  }

  async read(path: string, range: { offset?: bigint; length?: bigint } = {}): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    let size: bigint | undefined;
    for await (const { part } of this.client.readVolumeFile({ ...this.at(path), ...range })) {
      if (part.case === "entry") size = part.value.size;
      else if (part.case === "data") pieces.push(part.value);
    }
    expect(size).toBeDefined();
    return Buffer.concat(pieces);
  }

  async write(path: string, content: Buffer | string, options: { force?: boolean; metadata?: object; isCut?: boolean } = {}) {
    const { force = false, metadata, isCut = false } = options;
    const bytes = Buffer.from(content);
    const head = { ...this.at(path), force, ...(metadata ? { metadata } : {}) };
    async function* parts() {
      yield { part: { case: "head" as const, value: head } };
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        yield { part: { case: "data" as const, value: new Uint8Array(bytes.subarray(at, at + PIECE_BYTES)) } };
      }
      if (!isCut) yield { part: { case: "end" as const, value: {} } };
    }
    return (await this.client.writeVolumeFile(parts())).entry;
  }

  delete(force = false) {
    return this.client.deleteVolume({ volumeId: this.id, force });
  }
}

export function testVolumes(node: VolumesNode): void {
  it("creates a volume once, lists it, and deletes it once", async () => {
    const volume = await Volume.create(node.client);
    const again = { volumeId: volume.id, sizeBytes: SIZE_BYTES };
    expect(await node.client.createVolume(again)).toMatchObject({ created: false });
    expect((await node.client.listVolumes({})).volumes).toMatchObject([{ ...again, sandboxIds: [] }]);
    const usage = await node.client.getVolumeUsage({ volumeId: volume.id });
    expect(usage.totalBytes).toBeGreaterThanOrEqual(SIZE_BYTES);
    expect(await volume.delete()).toMatchObject({ existed: true });
    expect(await volume.delete()).toMatchObject({ existed: false });
    expect((await node.client.listVolumes({})).volumes).toEqual([]);
    expect(await detailOf(node.client.getVolumeUsage({ volumeId: volume.id }))).toBe("volume_missing");
    expect(await detailOf(volume.stat("/"))).toBe("volume_missing");
    for (const volumeId of ["", "../etc", randomUUID().toUpperCase(), "x".repeat(36)]) {
      expect(await detailOf(node.client.createVolume({ volumeId, sizeBytes: SIZE_BYTES })), volumeId).toBe("invalid_argument");
    }
  });

  it("keeps files and directories with their owners and modes", async () => {
    const volume = await Volume.create(node.client);
    const root = await volume.stat("/");
    expect(root).toMatchObject({ type: "directory", path: "/", uid: 1000, gid: 1000, mode: 0o777 });
    const { client } = node;
    expect((await client.makeVolumeDirectory({ ...volume.at("/a"), metadata: { uid: 7, gid: 8, mode: 0o750 } })).entry).toMatchObject({
      name: "a",
      type: "directory",
      path: "/a",
      uid: 7,
      gid: 8,
      mode: 0o750,
    });
    expect(await detailOf(client.makeVolumeDirectory(volume.at("/a")))).toBe("entry_exists");
    expect((await client.makeVolumeDirectory({ ...volume.at("/a"), force: true })).entry).toMatchObject({ mode: 0o750 });
    expect(await detailOf(client.makeVolumeDirectory(volume.at("/x/y")))).toBe("entry_missing");
    await client.makeVolumeDirectory({ ...volume.at("/x/y"), force: true });
    expect(await volume.write("/a/f", "one")).toMatchObject({ name: "f", type: "file", size: 3n, uid: 7, gid: 8, mode: 0o644 });
    expect(await detailOf(volume.write("/a/f", "two"))).toBe("entry_exists");
    expect(await volume.write("a/f", "three", { force: true })).toMatchObject({ size: 5n });
    expect(await volume.write("/new/deep/f", "x", { force: true, metadata: { mode: 0o600 } })).toMatchObject({ mode: 0o600 });
    expect((await volume.read("/a/f")).toString()).toBe("three");
    expect((await client.setVolumeEntry({ ...volume.at("/a/f"), metadata: { uid: 3, mode: 0o400 } })).entry).toMatchObject({
      uid: 3,
      gid: 8,
      mode: 0o400,
    });
    expect(await volume.list("/")).toEqual(["/a", "/new", "/x"]);
    expect(await volume.list("/", 2)).toEqual(["/a", "/a/f", "/new", "/new/deep", "/x", "/x/y"]);
    await client.removeVolumeEntry(volume.at("/new"));
    expect(await detailOf(volume.stat("/new/deep/f"))).toBe("entry_missing");
    await volume.delete();
  });

  it("refuses what a path does not allow", async () => {
    const volume = await Volume.create(node.client);
    await volume.write("/f", "x");
    await node.client.makeVolumeDirectory(volume.at("/d"));
    for (const path of ["/../etc/passwd", "/d/../f", "..", "/a\0b"]) expect(await detailOf(volume.stat(path)), path).toBe("path_invalid");
    expect(await detailOf(volume.read("/missing"))).toBe("entry_missing");
    expect(await detailOf(volume.read("/d"))).toBe("is_a_directory");
    expect(await detailOf(volume.list("/f"))).toBe("not_a_directory");
    expect(await detailOf(volume.stat("/f/below"))).toBe("not_a_directory");
    expect(await detailOf(volume.write("/d", "x", { force: true }))).toBe("is_a_directory");
    expect(await detailOf(volume.write("/missing/f", "x"))).toBe("entry_missing");
    expect(await detailOf(node.client.removeVolumeEntry(volume.at("/")))).toBe("path_invalid");
    expect(await detailOf(node.client.removeVolumeEntry(volume.at("/gone")))).toBe("entry_missing");
    expect(await detailOf(node.client.setVolumeEntry({ ...volume.at("/f"), metadata: { mode: 0o10000 } }))).toBe("invalid_argument");
    await volume.delete();
  });

  it("streams large files, parts of them, and keeps nothing of what is cut off or too large", async () => {
    const volume = await Volume.create(node.client);
    const large = Buffer.alloc(5 * 1024 * 1024 + 3, "0123456789abcdef");
    expect(await volume.write("/large", large)).toMatchObject({ size: BigInt(large.length) });
    expect((await volume.read("/large")).equals(large)).toBe(true);
    const [offset, length] = [1024n * 1024n - 1n, 2n * 1024n * 1024n];
    expect((await volume.read("/large", { offset, length })).equals(large.subarray(Number(offset), Number(offset + length)))).toBe(true);
    expect((await volume.read("/large", { offset: BigInt(large.length) - 2n })).equals(large.subarray(-2))).toBe(true);
    expect((await volume.read("/large", { offset: 100_000_000n })).length).toBe(0);
    expect(await detailOf(volume.write("/cut", large, { isCut: true }))).toBe("invalid_argument");
    expect(await detailOf(volume.write("/full", Buffer.alloc(Number(SIZE_BYTES))))).toBe("volume_full");
    expect(await volume.list("/")).toEqual(["/large"]);
    expect(Number((await node.client.getVolumeUsage({ volumeId: volume.id })).usedBytes)).toBeGreaterThanOrEqual(large.length);
    await volume.delete();
  });

  it("mounts volumes in sandboxes, and keeps them while a sandbox runs or is paused", async () => {
    const volume = await Volume.create(node.client);
    const [id, imageId] = [node.newSandboxId(), node.newImageId()];
    const volumeMounts = [{ volumeId: volume.id, path: "/mnt/data" }];
    await node.create(id, { volumeMounts });
    expect((await node.client.listVolumes({})).volumes).toMatchObject([{ sandboxIds: [id] }]);
    expect(await detailOf(volume.delete())).toBe("volume_in_use");
    await node.pause(id, imageId);
    expect(await detailOf(volume.delete())).toBe("volume_in_use");
    const restored = await node.client.resumeSandbox({ spec: node.spec(id, { imageId, volumeMounts }) });
    expect(restored).toMatchObject({ startKind: node.keepsMemory ? StartKind.RESTORE : StartKind.BOOT, memoryLostReason: "" });
    await node.kill(id);
    expect(await volume.delete()).toMatchObject({ existed: true });
  });

  it("boots a sandbox whose volumes are gone or others, and says so", async () => {
    const volume = await Volume.create(node.client);
    const [id, imageId] = [node.newSandboxId(), node.newImageId()];
    const volumeMounts = [{ volumeId: volume.id, path: "/mnt/data" }];
    await node.create(id, { volumeMounts });
    await node.pause(id, imageId);
    expect(await volume.delete(true)).toMatchObject({ existed: true });
    const booted = await node.client.resumeSandbox({ spec: node.spec(id, { imageId, volumeMounts: [] }) });
    expect(booted.startKind).toBe(StartKind.BOOT);
    expect(booted.memoryLostReason === "").toBe(!node.keepsMemory);
    const other = node.newSandboxId();
    expect(await detailOf(node.create(other, { volumeMounts }))).toBe("volume_missing");
    await node.kill(id);
  });

  it("refuses mounts at paths that no volume can have", async () => {
    const volume = await Volume.create(node.client);
    for (const path of ["", "/", "relative", "/a/../b", "/a/", "/proc/x", "/sys", "/dev/shm", "/.skerry"]) {
      const create = node.create(node.newSandboxId(), { volumeMounts: [{ volumeId: volume.id, path }] });
      expect(await detailOf(create), path).toBe("invalid_argument");
    }
    const twice = { volumeId: volume.id, path: "/mnt" };
    expect(await detailOf(node.create(node.newSandboxId(), { volumeMounts: [twice, twice] }))).toBe("invalid_argument");
    await volume.delete();
  });
}
