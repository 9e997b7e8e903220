import { createHash } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret } from "@skerry/base";
import { listXattrs, readXattr } from "@skerry/base/linux";
import {
  describeOciImage,
  type PulledOciImage,
  type PullOptions,
  parseOciImageReference,
  pullOciImage,
  resolveOciImage,
  unpackOciImage,
} from "@skerry/layers";
import { REGISTRY_USER, startRegistry, type TarEntry, type TestRegistry, tarArchive, writeOciLayout } from "@skerry/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const dir = mkdtempSync(join(tmpdir(), "skerry-images-"));
let registry: TestRegistry;
let guarded: TestRegistry;
beforeAll(async () => {
  [registry, guarded] = await Promise.all([startRegistry(), startRegistry({ asksForUser: true })]);
});
afterAll(async () => {
  await registry.stop();
  await guarded.stop();
  rmSync(dir, { recursive: true, force: true });
});

const OCI_TYPES = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";

let count = 0;
function emptyDir(): string {
  const path = join(dir, `d${++count}`);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

async function pull(reference: string, given: Partial<PullOptions> = {}): Promise<PulledOciImage> {
  const options = { dir: emptyDir(), ...given };
  const resolved = await resolveOciImage(parseOciImageReference(reference), options);
  return await pullOciImage(await describeOciImage(resolved, options), options);
}

/** Unpacks an image of these layers, and returns the directory. */
async function unpacked(...layers: readonly (readonly TarEntry[])[]): Promise<string> {
  const [layoutDir, target] = [emptyDir(), emptyDir()];
  await writeOciLayout(layoutDir, [{ layers: layers.map(tarArchive) }]);
  await unpackOciImage({ reference: "test", layoutDir }, { target });
  return target;
}

describe("pulling", () => {
  const layer = tarArchive([{ path: "hello", content: "world" }]);

  it("says what the name pointed to, and how the image wants to be run", async () => {
    const config = { Env: ["A=b"], User: "1000", WorkingDir: "/srv", Entrypoint: ["/app"], Cmd: ["serve"], Labels: { of: "tests" } };
    const reference = await registry.push("configured:v1", { layers: [layer], config });
    const image = await pull(reference);
    const answer = await fetch(`http://${registry.host}/v2/configured/manifests/v1`, {
      headers: { accept: OCI_TYPES },
    });
    expect(image.digest).toBe(
      `sha256:${createHash("sha256")
        .update(await answer.text())
        .digest("hex")}`,
    );
    expect(image).toMatchObject({
      reference,
      config: { env: ["A=b"], user: "1000", workingDir: "/srv", entrypoint: ["/app"], cmd: ["serve"], labels: { of: "tests" } },
    });
    expect((await pull(`${registry.host}/configured@${image.digest}`)).digest).toBe(image.digest);
    expect((await pull(`${registry.host}/configured:v1@${image.digest}`)).digest).toBe(image.digest);
  });

  it("takes the image for this machine's processor out of several", async () => {
    const other = tarArchive([{ path: "hello", content: "from elsewhere" }]);
    const reference = await registry.push("several:1", { layers: [other], architecture: "s390x" }, { layers: [layer] });
    const target = emptyDir();
    await unpackOciImage(await pull(reference), { target });
    expect(readFileSync(join(target, "hello"), "utf8")).toBe("world");
  });

  it("refuses an image for another processor", async () => {
    const only = await registry.push("other:1", { layers: [layer], architecture: "s390x" });
    await expect(pull(only)).rejects.toMatchObject({
      code: "oci_image_wrong_architecture",
      publicMessage: expect.stringContaining("s390x"),
    });
    const none = await registry.push("others:1", { layers: [layer], architecture: "s390x" }, { layers: [layer], architecture: "riscv64" });
    await expect(pull(none)).rejects.toMatchObject({ code: "oci_image_wrong_architecture" });
  });

  it("says that there is no such image", async () => {
    await registry.push("present:1", { layers: [layer] });
    const missing = { code: "oci_image_not_found", publicMessage: expect.stringContaining("no such image") };
    await expect(pull(`${registry.host}/present:2`)).rejects.toMatchObject(missing);
    await expect(pull(`${registry.host}/absent`)).rejects.toMatchObject(missing);
    await expect(pull(`${registry.host}/present@sha256:${"0".repeat(64)}`)).rejects.toMatchObject(missing);
  });

  it("gives its user and password to a registry that asks, and leaves neither behind", async () => {
    const reference = await guarded.push("private:1", { layers: [layer] });
    const credentials = (password: string) => ({ username: REGISTRY_USER.username, password: new Secret(password) });
    const workDir = emptyDir();
    const image = await pull(reference, { dir: workDir, credentials: credentials(REGISTRY_USER.password) });
    expect(image.reference).toBe(reference);
    expect(readdirSync(workDir)).toEqual(["layout"]);
    await expect(pull(reference)).rejects.toMatchObject({ code: "oci_image_access_denied" });
    const refused = pull(reference, { credentials: credentials("another") });
    await expect(refused).rejects.toMatchObject({ code: "oci_image_access_denied" });
    await expect(refused).rejects.not.toThrow(/another/);
  });

  it("does not take a layer or a manifest that is not what it is said to be", async () => {
    const damaged = await registry.push("damaged:1", { layers: [tarArchive([{ path: "big", content: "a".repeat(9_000) }])] });
    const blobs = join(registry.storageDir, "docker/registry/v2/blobs/sha256");
    const own = readdirSync(join(registry.storageDir, "docker/registry/v2/repositories/damaged/_layers/sha256"));
    const files = own.map((digest) => join(blobs, digest.slice(0, 2), digest, "data"));
    const [layerFile = ""] = files.filter((path) => readFileSync(path).subarray(0, 2).toString("hex") === "1f8b");
    const whole = readFileSync(layerFile);
    writeFileSync(layerFile, Buffer.concat([whole.subarray(0, -1), Buffer.from([(whole.at(-1) ?? 0) ^ 1])]));
    await expect(pull(damaged)).rejects.toMatchObject({ code: "oci_image_damaged" });
    truncateSync(layerFile, whole.length - 10);
    await expect(pull(damaged)).rejects.toMatchObject({ code: expect.stringMatching(/^oci_image_/) });
    writeFileSync(layerFile, whole);

    const { digest } = await pull(damaged);
    const hex = digest.slice("sha256:".length);
    writeFileSync(join(blobs, hex.slice(0, 2), hex, "data"), '{"schemaVersion":2}');
    await expect(pull(`${registry.host}/damaged@${digest}`)).rejects.toMatchObject({ code: expect.stringMatching(/^oci_image_/) });
  });

  describe("from something that is no registry", () => {
    const connections = new Set<Socket>();
    let silent: Server;
    beforeAll(async () => {
      silent = createServer((socket) => connections.add(socket.on("error", () => {})));
      await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    });
    afterAll(() => {
      for (const socket of connections) socket.destroy();
      silent.close();
    });
    const address = () => `127.0.0.1:${(silent.address() as { port: number }).port}`;

    it("gives up soon when nothing is answered", async () => {
      const startedAt = performance.now();
      await expect(pull(`${address()}/app`, { answerTimeoutMs: 500 })).rejects.toMatchObject({ code: "registry_unreachable" });
      expect(performance.now() - startedAt).toBeLessThan(30_000);
    });

    it("ends when it is told to", async () => {
      const controller = new AbortController();
      const pulling = pull(`${address()}/app`, { signal: controller.signal });
      setTimeout(() => controller.abort(new Error("enough")), 200);
      await expect(pulling).rejects.toThrow("enough");
    });

    it("says so when nobody listens", async () => {
      await expect(pull("127.0.0.1:1/app")).rejects.toMatchObject({ code: "registry_unreachable" });
    });
  });
});

describe("unpacking", () => {
  it("keeps owners, modes, times, links and attributes", async () => {
    const root = await unpacked([
      { path: "bin/", mode: 0o755, mtimeSeconds: 1_600_000_000 },
      { path: "bin/su", content: "set-uid", mode: 0o4755, uid: 0, gid: 42 },
      { path: "bin/link", type: "hard-link", target: "bin/su" },
      { path: "bin/short", type: "symlink", target: "su" },
      { path: "bin/abs", type: "symlink", target: "/bin/su" },
      { path: "home/user/", mode: 0o2750, uid: 1000, gid: 1000 },
      { path: "home/user/file", content: "mine", uid: 1000, gid: 1000, mtimeSeconds: 1_500_000_000 },
      { path: "attributes", content: "x", xattrs: { "user.kind": "test value" } },
      { path: "pipe", type: "fifo" },
    ]);
    const su = lstatSync(join(root, "bin/su"));
    expect([su.mode & 0o7777, su.uid, su.gid, su.nlink]).toEqual([0o4755, 0, 42, 2]);
    expect(lstatSync(join(root, "bin/link")).ino).toBe(su.ino);
    expect(readlinkSync(join(root, "bin/short"))).toBe("su");
    expect(readlinkSync(join(root, "bin/abs"))).toBe("/bin/su");
    const home = lstatSync(join(root, "home/user"));
    expect([home.mode & 0o7777, home.uid, home.gid]).toEqual([0o2750, 1000, 1000]);
    expect(lstatSync(join(root, "home/user/file")).mtimeMs).toBe(1_500_000_000_000);
    expect(lstatSync(join(root, "bin")).mtimeMs).toBe(1_600_000_000_000);
    expect(readXattr(join(root, "attributes"), "user.kind").toString()).toBe("test value");
    expect(lstatSync(join(root, "pipe")).isFIFO()).toBe(true);
    expect(statSync(root).mode & 0o777).toBe(0o755);
  });

  it("obeys whiteouts, of single files, of directories and of all that a directory had", async () => {
    const root = await unpacked(
      [
        { path: "gone", content: "1" },
        { path: "tree/" },
        { path: "tree/below", content: "1" },
        { path: "cleared/" },
        { path: "cleared/old", content: "1" },
        { path: "cleared/sub/" },
        { path: "cleared/sub/old", content: "1" },
        { path: "kept/" },
        { path: "kept/old", content: "1" },
        { path: "changed", content: "old" },
        { path: "becomes-file/" },
        { path: "becomes-file/x", content: "1" },
      ],
      [
        { path: ".wh.gone" },
        { path: ".wh.tree" },
        { path: "cleared/" },
        { path: "cleared/.wh..wh..opq" },
        { path: "cleared/new", content: "2" },
        { path: "kept/" },
        { path: "kept/new", content: "2" },
        { path: "changed", content: "new" },
        { path: "becomes-file", content: "now a file" },
      ],
      [{ path: "tree/" }, { path: "tree/again", content: "3" }],
    );
    expect(readdirSync(root).sort()).toEqual(["becomes-file", "changed", "cleared", "kept", "tree"]);
    expect(readdirSync(join(root, "tree"))).toEqual(["again"]);
    expect(readdirSync(join(root, "cleared"))).toEqual(["new"]);
    expect(readdirSync(join(root, "kept")).sort()).toEqual(["new", "old"]);
    expect(readFileSync(join(root, "changed"), "utf8")).toBe("new");
    expect(readFileSync(join(root, "becomes-file"), "utf8")).toBe("now a file");
  });

  it("leaves out device nodes, and attributes that overlayfs would obey", async () => {
    const root = await unpacked([
      { path: "dev/" },
      { path: "dev/disk", type: "block-device", device: [254, 0], mode: 0o666 },
      { path: "dev/memory", type: "character-device", device: [1, 1], mode: 0o666 },
      { path: "hidden", type: "character-device", device: [0, 0] },
      { path: "redirected/", xattrs: { "trusted.overlay.redirect": "/etc", "trusted.overlay.opaque": "y", "user.stays": "1" } },
      { path: "redirected/file", content: "x", xattrs: { "trusted.overlay.metacopy": "" } },
    ]);
    expect(readdirSync(root).sort()).toEqual(["dev", "redirected"]);
    expect(readdirSync(join(root, "dev"))).toEqual([]);
    expect(listXattrs(join(root, "redirected"))).toEqual(["user.stays"]);
    expect(listXattrs(join(root, "redirected/file"))).toEqual([]);
  });

  it("unpacks layers that are compressed with Zstandard", async () => {
    const reference = await registry.push("zstd:1", { layers: [tarArchive([{ path: "hello", content: "world" }])], compression: "zstd" });
    const stored = await fetch(`http://${registry.host}/v2/zstd/manifests/1`, { headers: { accept: OCI_TYPES } });
    expect(await stored.text()).toContain("tar+zstd");
    const target = emptyDir();
    await unpackOciImage(await pull(reference), { target });
    expect(readFileSync(join(target, "hello"), "utf8")).toBe("world");
  });

  it("keeps names that are not UTF-8, which are bytes", async () => {
    const archive = tarArchive([{ path: "caf?", content: "x" }]);
    archive[3] = 0xe9;
    const reference = await registry.push("latin:1", { layers: [withChecksum(archive)] });
    const target = emptyDir();
    await unpackOciImage(await pull(reference), { target });
    expect(readdirSync(target, { encoding: "latin1" })).toEqual(["café"]);
  });

  it("ends at the size limit, before the disk is full", async () => {
    const bomb = tarArchive([
      { path: "zeros", content: Buffer.alloc(30_000_000) },
      { path: "more", content: Buffer.alloc(30_000_000) },
    ]);
    const image = await pull(await registry.push("bomb:1", { layers: [bomb] }));
    const target = emptyDir();
    const message = expect.stringMatching(/uncompressed size exceeds the limit, and the maximum is 40 MB/);
    await expect(unpackOciImage(image, { target, maxBytes: 40_000_000 })).rejects.toMatchObject({
      code: "oci_image_too_large",
      publicMessage: message,
    });
    expect((await unpackOciImage(image, { target: emptyDir(), maxBytes: 70_000_000 })).entries).toBe(2);
  });

  it("refuses layers that are no archives", async () => {
    const reference = await registry.push("nonsense:1", { layers: [Buffer.from("this is no tar archive".repeat(100))] });
    await expect(unpackOciImage(await pull(reference), { target: emptyDir() })).rejects.toMatchObject({ code: "oci_image_unusable" });
  });
});

/** Puts right the checksum of an archive's first header. */
function withChecksum(archive: Buffer): Buffer {
  archive.fill(" ", 148, 156);
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return archive;
}
