import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setXattr } from "@skerry/base/linux";
import { type LayerStore, mountRootFilesystem, openLayerStore, parseLayerDigest, unmountRootFilesystem } from "@skerry/layers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mountPatiently } from "./mount-patiently.ts";

const dir = mkdtempSync(join(tmpdir(), "skerry-layers-"));
let store: LayerStore;
beforeAll(async () => {
  store = await openLayerStore(join(dir, "layers"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function stage(fill: (path: string) => void): Promise<string> {
  const path = await store.stagingDir();
  fill(path);
  execFileSync("find", [path, "-exec", "touch", "-h", "-d", "@1700000000", "{}", "+"]);
  return path;
}

const simple = (path: string) => {
  mkdirSync(join(path, "etc"));
  writeFileSync(join(path, "etc/name"), "skerry");
  symlinkSync("name", join(path, "etc/link"));
};

describe("layer store", () => {
  it("gives equal trees one digest and keeps one copy", async () => {
    const first = await store.adopt(await stage(simple));
    const second = await store.adopt(await stage(simple));
    expect(second).toBe(first);
    expect(await store.has(first)).toBe(true);
    expect(readFileSync(join(await store.path(first), "etc/name"), "utf8")).toBe("skerry");
    expect(readdirSync(join(dir, "layers/staging"))).toEqual([]);
  });

  it("takes one of equal trees that come at once, here and from another process, and leaves it where it is", async () => {
    const root = join(dir, "at-once");
    const stores = [await openLayerStore(root), await openLayerStore(root)];
    for (let round = 0; round < 10; round += 1) {
      const places = await Promise.all(
        Array.from({ length: 6 }, async (_, index) => {
          const at = stores[index % 2] ?? store;
          const staged = await at.stagingDir();
          writeFileSync(join(staged, "name"), `${round}`);
          utimesSync(join(staged, "name"), 1_700_000_000, 1_700_000_000);
          utimesSync(staged, 1_700_000_000, 1_700_000_000);
          const path = await at.path(await at.adopt(staged));
          return { path, inode: statSync(join(path, "name")).ino };
        }),
      );
      for (const place of places) expect(place).toEqual({ path: places[0]?.path, inode: statSync(join(place.path, "name")).ino });
    }
    expect(readdirSync(join(root, "staging"))).toEqual([]);
  });

  it.each<[string, (path: string) => void]>([
    ["content", (path) => writeFileSync(join(path, "etc/name"), "Skerry")],
    ["mode", (path) => chmodSync(join(path, "etc/name"), 0o600)],
    ["owner", (path) => execFileSync("chown", ["1000:1000", join(path, "etc/name")])],
    ["a link's target", (path) => execFileSync("ln", ["-sfn", "other", join(path, "etc/link")])],
    [
      "an extended attribute",
      (path) => execFileSync("python3", ["-c", `import os; os.setxattr(${JSON.stringify(join(path, "etc/name"))}, "user.a", b"b")`]),
    ],
    ["an empty directory", (path) => mkdirSync(join(path, "etc/more"))],
  ])("tells trees apart by %s", async (_what, change) => {
    const plain = await store.adopt(await stage(simple));
    const changed = await store.adopt(
      await stage((path) => {
        simple(path);
        change(path);
      }),
    );
    expect(changed).not.toBe(plain);
  });

  it("tells trees apart by modification time", async () => {
    const plain = await store.adopt(await stage(simple));
    const staged = await stage(simple);
    utimesSync(join(staged, "etc/name"), 1_600_000_000, 1_600_000_000);
    expect(await store.adopt(staged)).not.toBe(plain);
  });

  it("gives a tree the digest that earlier versions gave it", async () => {
    const staged = await stage((path) => {
      simple(path);
      chmodSync(path, 0o755);
      chmodSync(join(path, "etc"), 0o755);
      chmodSync(join(path, "etc/name"), 0o644);
      setXattr(Buffer.from(join(path, "etc/name")), "user.b", Buffer.from([0, 255]));
      setXattr(Buffer.from(join(path, "etc/name")), "user.a", Buffer.from("value"));
      for (const name of ["z", "ä", "\u{1f600}", "\uffee"]) writeFileSync(join(path, name), name, { mode: 0o644 });
    });
    expect(await store.adopt(staged)).toBe("sha256:238b96566ad9b8ec5db089a123a6b9df92a0f346ec03b6daa428783acf37378f");
  });

  it("takes names, link targets and attribute names that are not UTF-8, and tells them apart", async () => {
    const adopt = (odd: number) =>
      stage((path) => {
        const bytes = (name: string) => Buffer.from(`${path}/${name}`, "latin1");
        writeFileSync(bytes(`file-${String.fromCharCode(odd)}`), "content");
        mkdirSync(bytes(`folder-${String.fromCharCode(odd)}`));
        writeFileSync(bytes(`folder-${String.fromCharCode(odd)}/inside`), "content");
      }).then((staged) => store.adopt(staged));
    expect(await adopt(0xe4)).not.toBe(await adopt(0xf6));
    const link = (odd: number) => stage((path) => symlinkSync(Buffer.from([odd]), join(path, "link")));
    expect(await store.adopt(await link(0xe4))).not.toBe(await store.adopt(await link(0xf6)));
    const attribute = (odd: number) =>
      stage((path) => setXattr(Buffer.from(path), Buffer.concat([Buffer.from("user."), Buffer.from([odd])]), Buffer.from("x")));
    expect(await store.adopt(await attribute(0xe4))).not.toBe(await store.adopt(await attribute(0xf6)));
  });

  it("takes a tree whose adoption was interrupted before its record was written", async () => {
    const digest = await store.adopt(await stage((path) => writeFileSync(join(path, "only"), "1")));
    const path = await store.path(digest);
    rmSync(`${path}.json`);
    expect(await store.has(digest)).toBe(false);
    await expect(store.path(digest)).rejects.toMatchObject({ code: "layer_missing" });
    expect(await store.adopt(await stage((staged) => writeFileSync(join(staged, "only"), "1")))).toBe(digest);
    expect(await store.has(digest)).toBe(true);
  });

  it.each(["", "sha256:abc", "../../etc", `sha256:${"g".repeat(64)}`, `sha512:${"a".repeat(64)}`])("refuses %j as a digest", (text) => {
    expect(() => parseLayerDigest(text)).toThrow(/not a layer digest/);
  });
});

describe("root file system", () => {
  function folders(name: string) {
    const own = join(dir, name);
    const paths = { upper: join(own, "upper"), work: join(own, "work"), target: join(own, "root") };
    for (const path of Object.values(paths)) mkdirSync(path, { recursive: true });
    return paths;
  }

  it("stacks layers, the later ones over the earlier, and writes go to the upper only", () => {
    const [low, high] = ["low", "high"].map((name) => join(dir, "stack", name));
    for (const path of [low, high]) mkdirSync(path ?? "", { recursive: true });
    writeFileSync(join(low ?? "", "both"), "low");
    writeFileSync(join(low ?? "", "low"), "low");
    writeFileSync(join(high ?? "", "both"), "high");
    const paths = folders("stacked, with: odd\\name");
    mountPatiently({ layers: [low ?? "", high ?? ""], ...paths });
    try {
      expect(readFileSync(join(paths.target, "both"), "utf8")).toBe("high");
      expect(readFileSync(join(paths.target, "low"), "utf8")).toBe("low");
      writeFileSync(join(paths.target, "low"), "changed");
      expect(readFileSync(join(low ?? "", "low"), "utf8")).toBe("low");
      expect(readFileSync(join(paths.upper, "low"), "utf8")).toBe("changed");
    } finally {
      expect(unmountRootFilesystem(paths.target)).toBe(true);
    }
    expect(unmountRootFilesystem(paths.target)).toBe(false);
    expect(existsSync(join(paths.target, "both"))).toBe(false);
  });

  function chain(name: string, length: number): string[] {
    return Array.from({ length }, (_, index) => {
      const layer = join(dir, `${name}-${"x".repeat(80)}`, String(index));
      mkdirSync(layer, { recursive: true });
      writeFileSync(join(layer, "top"), String(index));
      writeFileSync(join(layer, `only-${index}`), "");
      return layer;
    });
  }

  it("stacks more layers than their names would fit into one mount", () => {
    const paths = folders("long");
    mountRootFilesystem({ layers: chain("long", 150), ...paths });
    try {
      expect(readFileSync(join(paths.target, "top"), "utf8")).toBe("149");
      expect(readdirSync(paths.target)).toHaveLength(151);
      writeFileSync(join(paths.target, "top"), "changed");
      expect(readFileSync(join(paths.upper, "top"), "utf8")).toBe("changed");
    } finally {
      unmountRootFilesystem(paths.target);
    }
  });

  it("refuses a chain that does not fit into one mount, and leaves nothing mounted", () => {
    const paths = folders("longer");
    const layers = chain("longer", 300);
    expect(() => mountRootFilesystem({ layers, ...paths })).toThrow(/do not fit/);
    expect(unmountRootFilesystem(paths.target)).toBe(false);
  });
});
