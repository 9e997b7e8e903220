// Layers whose maker is hostile: nothing of theirs reaches anything outside of the tree that they are unpacked to.

import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PlatformError } from "@skerry/base";
import { openLayerStore, unpackOciImage } from "@skerry/layers";
import { type TarEntry, tarArchive, writeOciLayout } from "@skerry/testkit";
import { sampleOf, scaled } from "@skerry/testkit/depth";
import { afterAll, beforeEach, expect, it } from "vitest";

const dir = mkdtempSync(join(tmpdir(), "skerry-hostile-"));
const outside = join(dir, "outside");
const secret = join(outside, "secret");
beforeEach(() => {
  rmSync(outside, { recursive: true, force: true });
  mkdirSync(outside);
  writeFileSync(secret, "as it was");
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let count = 0;
/** Unpacks the layers beside a file of ours, and checks that nothing around them has changed. Returns the digest of the tree, or undefined. */
async function unpackHostile(layers: readonly Uint8Array[]): Promise<string | undefined> {
  const folder = join(dir, `d${++count}`);
  const [layoutDir, beside] = [join(folder, "layout"), join(folder, "beside")];
  mkdirSync(layoutDir, { recursive: true });
  writeFileSync(beside, "as it was");
  await writeOciLayout(layoutDir, [{ layers }]);
  const store = await openLayerStore(join(folder, "layers"));
  const target = await store.stagingDir();
  const before = lstatSync(outside);
  let digest: string | undefined;
  try {
    await unpackOciImage({ reference: "hostile", layoutDir }, { target });
    digest = await store.adopt(target);
  } catch (error) {
    expect(error).toBeInstanceOf(PlatformError);
    expect(error).toMatchObject({ code: "oci_image_unusable" });
    expect(existsSync(target) && lstatSync(target).isSymbolicLink()).toBe(false);
    await store.discard(target);
  }
  expect([readFileSync(beside, "utf8"), readFileSync(secret, "utf8"), readdirSync(outside)]).toEqual([
    "as it was",
    "as it was",
    ["secret"],
  ]);
  expect(readdirSync(folder).sort()).toEqual(["beside", "layers", "layout"]);
  const after = lstatSync(outside);
  expect([after.mode, after.uid, lstatSync(secret).nlink]).toEqual([before.mode, before.uid, 1]);
  rmSync(folder, { recursive: true, force: true });
  return digest;
}

const up = "../".repeat(12);
const CASES: readonly (readonly [string, readonly TarEntry[]])[] = [
  ["a path that goes up", [{ path: `${up}${outside.slice(1)}/secret`, content: "taken" }]],
  ["a path that goes up, below a directory", [{ path: "a/" }, { path: `a/${up}${outside.slice(1)}/new`, content: "taken" }]],
  ["an absolute path", [{ path: secret, content: "taken" }]],
  [
    "an absolute link and a file through it",
    [
      { path: "out", type: "symlink", target: outside },
      { path: "out/secret", content: "taken" },
      { path: "out/new", content: "taken" },
    ],
  ],
  [
    "a relative link and a file through it",
    [
      { path: "out", type: "symlink", target: `${up}${outside.slice(1)}` },
      { path: "out/secret", content: "taken" },
    ],
  ],
  [
    "a chain of links and a file through it",
    [
      { path: "a", type: "symlink", target: "b" },
      { path: "b", type: "symlink", target: "c" },
      { path: "c", type: "symlink", target: outside },
      { path: "a/secret", content: "taken" },
    ],
  ],
  [
    "a link in the place of a file that is then written",
    [
      { path: "file", type: "symlink", target: secret },
      { path: "file", content: "taken" },
    ],
  ],
  [
    "a hard link to the host and then its content",
    [
      { path: "stolen", type: "hard-link", target: secret },
      { path: "stolen", content: "taken" },
    ],
  ],
  [
    "a hard link through a link",
    [
      { path: "out", type: "symlink", target: outside },
      { path: "stolen", type: "hard-link", target: "out/secret" },
    ],
  ],
  [
    "a whiteout through a link",
    [
      { path: "out", type: "symlink", target: outside },
      { path: "out/.wh.secret", content: "" },
    ],
  ],
  [
    "an opaque whiteout through a link",
    [
      { path: "out", type: "symlink", target: outside },
      { path: "out/.wh..wh..opq", content: "" },
    ],
  ],
  ["a whiteout of a path that goes up", [{ path: `${up}${outside.slice(1)}/.wh.secret` }]],
  ["a whiteout of what is above, named ..", [{ path: "a/" }, { path: ".wh..." }]],
  ["a whiteout named .. in a directory", [{ path: "a/" }, { path: "a/.wh..." }]],
  ["a whiteout without a name", [{ path: "a/" }, { path: "a/.wh." }, { path: ".wh." }, { path: ".wh.." }]],
  [
    "a mode for what a link points at",
    [
      { path: "out", type: "symlink", target: outside },
      { path: "out/", mode: 0o777, uid: 1000 },
    ],
  ],
  [
    "the root as a link",
    [
      { path: ".", type: "symlink", target: outside },
      { path: "secret", content: "taken" },
    ],
  ],
];

it.each(sampleOf("hostile layers", CASES, (_one, index) => index % 4 === 0))("can't reach out: %s", async (_what, entries) => {
  // In one layer, and in two that are laid over each other.
  await unpackHostile([tarArchive(entries)]);
  await unpackHostile([tarArchive(entries.slice(0, -1)), tarArchive(entries.slice(-1))]);
});

const NAMES = [
  "a",
  "b",
  "c",
  "..",
  ".",
  "",
  ".wh.a",
  ".wh.b",
  ".wh..wh..opq",
  ".wh...",
  ".wh.",
  "caf\u00e9",
  "x".repeat(90),
  `..${outside}`,
];
const TYPES = ["file", "hard-link", "symlink", "character-device", "block-device", "directory", "fifo"] as const;

/** mulberry32: the same layers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Of entries that any layer may have, with links that lead out. */
function tameLayer(random: (below: number) => number): Buffer {
  const leaves = ["a", "b", "c", "caf\u00e9", ".wh.a", ".wh.b", ".wh..wh..opq"];
  const entries = Array.from({ length: 5 + random(40) }, (): TarEntry => {
    const parents = Array.from({ length: random(3) }, () => `d${random(3)}/`).join("");
    const leaf = leaves[random(leaves.length)] ?? "a";
    if (random(4) === 0) return { path: `${parents}d${random(3)}/`, mode: random(0o10000), mtimeSeconds: random(1_000_000) };
    if (leaf.startsWith(".wh.")) return { path: `${parents}${leaf}` };
    const type = (["file", "symlink", "fifo", "character-device"] as const)[random(4)] ?? "file";
    const target = [outside, "d1", "..", "/"][random(4)] ?? "d1";
    return { path: `${parents}${leaf}`, type, ...(type === "symlink" && { target }), ...(type === "file" && { content: `${random(9)}` }) };
  });
  return tarArchive(entries);
}

function hostileLayer(random: (below: number) => number): Buffer {
  const name = () => NAMES[random(NAMES.length)] ?? "a";
  const path = () => {
    const start = random(8) === 0 ? "/" : random(8) === 0 ? `${"../".repeat(8)}` : "";
    return `${start}${Array.from({ length: 1 + random(3) }, name).join("/")}`.slice(0, 90);
  };
  const targets = () => [outside, secret, "..", "/", "a", "b/c", `${"../".repeat(8)}${outside.slice(1)}`, "a/b"][random(8)] ?? "a";
  const entries = Array.from({ length: 5 + random(40) }, (): TarEntry => {
    const type = TYPES[random(TYPES.length)] ?? "file";
    return {
      path: path(),
      type,
      ...(type.endsWith("link") && { target: targets() }),
      ...(type === "file" && { content: "x".repeat(random(2_000)) }),
      ...(type.endsWith("device") && { device: [random(3), random(8)] as const }),
      ...(random(6) === 0 &&
        type !== "symlink" && { xattrs: { "trusted.overlay.opaque": "y", "user.mark": "1", "user.overlay.redirect": "/etc" } }),
      mode: random(0o10000),
      uid: random(3) * 1000,
    };
  });
  const archive = tarArchive(entries);
  // A byte anywhere, in one of four.
  if (random(4) === 0) archive[random(archive.length)] = random(256);
  // Or an end that comes too early.
  return random(8) === 0 ? archive.subarray(0, random(archive.length)) : archive;
}

it("can't reach out, whatever the layers are, and become the same tree each time", async () => {
  let unpackedTrees = 0;
  for (let seed = 1; seed <= scaled("images of random layers", { sample: 6, full: 120 }); seed++) {
    const random = randomOf(seed);
    const layers = Array.from({ length: 1 + random(3) }, () => (seed % 3 === 0 ? tameLayer : hostileLayer)(random));
    const first = await unpackHostile(layers);
    if (first === undefined) continue;
    unpackedTrees += 1;
    expect(await unpackHostile(layers), `seed ${seed}`).toBe(first);
  }
  expect(unpackedTrees).toBeGreaterThan(0);
}, 900_000);
