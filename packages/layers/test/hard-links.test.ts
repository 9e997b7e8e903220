// Files with several names in layers, as the kernel itself keeps them: while they are changed, once that is a layer of others, and where it
// can't be.

import { execFileSync } from "node:child_process";
import { closeSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type DiskAreas,
  linkUp,
  mergeUppers,
  mountRootFilesystem,
  newAreaId,
  openDiskAreas,
  removeRootFilesystem,
  unmountRootFilesystem,
} from "@skerry/layers";
import { openUserNamespace } from "@skerry/runtime";
import { scaled } from "@skerry/testkit/depth";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { mountPatiently } from "./mount-patiently.ts";

const base = realpathSync(mkdtempSync("/var/tmp/skerry-links-"));
const PART = scaled("files with several names in layers", { sample: 300, full: 2_000 }) / 20;
const mounted: string[] = [];
let areas: DiskAreas;
let count = 0;
let dir = "";
beforeEach(() => {
  count += 1;
  dir = made(`test${count}`);
  areas = open("file");
});
afterEach(async () => {
  for (const target of mounted.splice(0)) unmountRootFilesystem(target);
  await areas.stop();
  for (const id of areas.list()) await areas.destroy(id);
});
afterAll(() => execFileSync("rm", ["-rf", base]));

function made(...path: string[]): string {
  const folder = join(base, ...path);
  mkdirSync(folder, { recursive: true });
  return folder;
}
const open = (limit: "file" | "none") =>
  openDiskAreas({ dir: join(dir, `areas-${limit}`), trash: made("trash"), limit, ready: 0, reserveBytes: 0 });
const shell = (script: string, cwd: string) => execFileSync("/bin/bash", ["-ec", script], { cwd, encoding: "utf8" });

interface Own {
  readonly upper: string;
  readonly work: string;
}
const plain = (name: string): Own => ({ upper: made(`test${count}`, name, "u"), work: made(`test${count}`, name, "w") });

function mountOn(
  layers: readonly string[],
  { upper, work }: Own,
  { mount = mountPatiently, ...more }: { usernsFd?: number; mount?: typeof mountPatiently } = {},
) {
  const root = { layers, upper, work, target: mkdtempSync(join(made(`test${count}`, "roots"), "of-")), ...more };
  const target = join(root.target, "root");
  mkdirSync(target);
  const hardLinks = mount({ ...root, target });
  mounted.push(target);
  return { ...root, target, hardLinks, unmount: () => void removeRootFilesystem(mounted.splice(mounted.indexOf(target), 1)[0] ?? "") };
}
/** Changes files of these layers as a sandbox would, and makes a layer of what it has written. */
async function layerOf(layers: readonly string[], own: Own, script: string): Promise<string> {
  const root = mountOn(layers, own);
  shell(script, root.target);
  await linkUp(root);
  root.unmount();
  execFileSync("rm", ["-rf", join(own.work, "index")]);
  return own.upper;
}
const optionsOf = (target: string) =>
  readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .find((line) => line.split(" ")[1] === target)
    ?.split(" ")[3];

const LISTING = `
import glob, os
for name in sorted(glob.glob("?/*")):
    print(name, os.stat(name).st_nlink, *open(name).read().split())
`;
const BASE = `mkdir -p d e; for one in one two three; do echo base > $one; ln $one d/$one; ln $one e/$one; done`;
function template(script = BASE): string {
  const folder = made(`test${count}`, "template");
  shell(script, folder);
  return folder;
}

describe("the kernel keeps an index", () => {
  it.each(["file", "none"] as const)("on areas with the limit %s, in a chain of them above a template", async (limit) => {
    areas = open(limit);
    const layers = [template()];
    for (let length = 0; length < 3; length += 1) {
      const area = await areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 });
      const root = mountOn(layers, area);
      expect([root.hardLinks, optionsOf(root.target)]).toEqual(["kept", expect.stringContaining("index=on")]);
      shell(`echo ${length} >> d/one`, root.target);
      expect(readFileSync(join(root.target, "e/one"), "utf8")).toBe(readFileSync(join(root.target, "d/one"), "utf8"));
      await linkUp(root);
      root.unmount();
      await areas.open(area.id, { readOnly: true });
      expect(existsSync(join(area.work, "index"))).toBe(false);
      expect(lstatSync(join(area.upper, "one")).nlink).toBe(3);
      layers.push(area.upper);
    }
    const { target } = mountOn(layers, await areas.create(newAreaId(), { sizeMb: 64, ownerId: 0 }));
    for (const name of ["one", "d/one", "e/one"]) expect(readFileSync(join(target, name), "utf8")).toBe("base\n0\n1\n2\n");
  });

  it("with the ids of a user namespace", async () => {
    const idBase = 0x4000_0000;
    const usernsFd = await openUserNamespace(idBase);
    try {
      const own = plain("own");
      execFileSync("chown", [`${idBase}:${idBase}`, own.upper, own.work]);
      const root = mountOn([template()], own, { usernsFd });
      expect(root.hardLinks).toBe("kept");
      shell("echo more >> d/one", root.target);
      await linkUp(root);
      for (const path of ["one", "d", "d/one", "e", "e/one"]) expect(lstatSync(join(own.upper, path)).uid, path).toBe(idBase);
    } finally {
      closeSync(usernsFd);
    }
  });
});

describe("what becomes a layer", () => {
  it("has every name that is still one of the file, of every kind, and none that is not", async () => {
    const outside = made(`test${count}`, "outside");
    shell("echo outside > two; ln two other; touch -d 2001-01-01 two", outside);
    const before = lstatSync(join(outside, "two"), { bigint: true }).ctimeNs;
    const low = template(`${BASE}
      echo x > still; ln still e/still; ln -s nowhere s; ln -s nowhere s2; rm s2; ln s s2; mkfifo p; ln p p2; mknod c c 1 3; ln c c2
      echo x > $'odd \\xff\\n'; ln $'odd \\xff\\n' 'e/ too'; cp /bin/true set-id; chmod 6755 set-id; ln set-id d/set-id; touch -d 2001-01-01 set-id`);
    const high = await layerOf([low], plain("high"), "echo high > four; ln four d/four; ln four e/four");
    const own = plain("own");
    const top = await layerOf(
      [low, high],
      own,
      `echo new >> one; echo new >> d/four; chmod 4711 set-id; touch -h s2; chmod 600 p; chmod 600 c2; chmod 600 'e/ too'
       rm e/one; mv d/four d/five; echo other > e/other; rm e/four; ln e/other e/four
       echo new >> two; rm -r d/one; mv e/two e/six; rm -rf d.old; cp -r d d.old; rm -r d; ln -s ${outside} d`,
    );
    expect(lstatSync(join(outside, "two"), { bigint: true }).ctimeNs).toBe(before);
    const { target } = mountOn([low, high, top], plain("last"));
    const groups = shell(
      "find . -xdev ! -type d -printf '%i %n %p\\0' | sort -z | tr '\\n' '?' | tr '\\0' '\\n' | awk '{ n[$1] = $2; p[$1] = p[$1] \" \" $3 $4 } END { for (i in n) print n[i] p[i] }' | LC_ALL=C sort | grep -av d.old",
      target,
    );
    expect(groups).toMatch(/^2 \.\/s \.\/s2$/m);
    expect(groups).toMatch(/^2 \.\/p \.\/p2$/m);
    expect(groups).toMatch(/^2 \.\/c \.\/c2$/m);
    expect(groups).toMatch(/^2 \.\/e\/four \.\/e\/other$/m);
    expect(groups).toMatch(/^2 \.\/e\/six \.\/two$/m);
    expect(groups).toMatch(/^2 \.\/e\/too \.\/odd.*$/m);
    expect(groups).toMatch(/^1 \.\/four$/m);
    expect(groups).toMatch(/^1 \.\/one$/m);
    expect(lstatSync(join(target, "set-id")).mode & 0o7777).toBe(0o4711);
    expect(lstatSync(join(target, "set-id")).mtimeMs).toBe(new Date("2001-01-01T00:00:00").getTime());
    expect(readFileSync(join(target, "e/six"), "utf8")).toBe("base\nnew\n");
    // Nobody touched these.
    expect([readdirSync(top), readdirSync(join(top, "e"))].flat()).not.toContain("still");
  });

  it("takes many files with several names each, in a chain that is merged", async () => {
    // Of 20 parts, by number: 15 in the first layer, 10 to 17 in the second.
    const at = (parts: number) => parts * PART;
    const low = template(`mkdir d e; for i in {1..${at(20)}}; do echo $i > d/$i; ln d/$i e/$i; done`);
    const one = await layerOf([low], plain("one"), `for i in {1..${at(15)}}; do echo one >> e/$i; done`);
    const two = await layerOf([low, one], plain("two"), `for i in {${at(10)}..${at(17)}}; do echo two >> d/$i; done; rm d/${at(12)} e/5`);
    const merged = made(`test${count}`, "merged");
    await mergeUppers([one, two], merged);
    const shown = [[one, two], [merged]].map((layers, index) => {
      const { target } = mountOn([low, ...layers], plain(`last${index}`));
      shell(`echo last >> e/${at(14)}; echo last >> d/5`, target);
      return execFileSync("/usr/bin/python3", ["-c", LISTING], { cwd: target, encoding: "utf8" });
    });
    expect(shown[1]).toBe(shown[0]);
    expect(shown[0]).toContain(`d/${at(14)} 2 ${at(14)} one two last\n`);
    expect(shown[0]).toContain(`e/${at(17)} 2 ${at(17)} two\n`);
    expect(shown[0]).toContain(`e/${at(12)} 1 ${at(12)} one two\n`);
  });

  it("is refused where it has no room for the names, and is complete once there is", async () => {
    const low = template("mkdir -p d; echo base > one; for i in {1..300}; do mkdir d/$i; ln one d/$i/one; done");
    const area = await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 });
    const root = mountOn([low], area);
    shell(
      "echo more >> one; cat /dev/zero > full 2> /dev/null || true; for i in {1..9000}; do : > of-$i || break; done 2> /dev/null",
      root.target,
    );
    await expect(linkUp(root)).rejects.toMatchObject({ code: "links_not_kept", publicMessage: expect.stringContaining("no room") });
    expect(readFileSync(join(root.target, "d/299/one"), "utf8")).toBe("base\nmore\n");
    shell("rm full of-*", root.target);
    await linkUp(root);
    expect(lstatSync(join(area.upper, "d/299/one")).nlink).toBe(302);
  });
});

describe("an upper on other layers than before", () => {
  it("is mounted with all its files, and keeps files together from then on", async () => {
    const low = template();
    const own = plain("own");
    const first = mountOn([low], own);
    shell("echo more >> one; echo own > own", first.target);
    first.unmount();
    execFileSync("cp", ["-a", low, `${low}-copy`]);
    const second = mountOn([`${low}-copy`], own);
    expect(second.hardLinks).toBe("renewed");
    expect(readFileSync(join(second.target, "one"), "utf8")).toBe("base\nmore\n");
    shell("echo more >> two", second.target);
    expect(readFileSync(join(second.target, "d/two"), "utf8")).toBe("base\nmore\n");
    expect(readdirSync(own.upper).sort()).toEqual(["one", "own", "two"]);
    second.unmount();
    expect(mountOn([`${low}-copy`], own).hardLinks).toBe("kept");
  });

  it("that was written without an index is mounted, too", () => {
    const low = template();
    const own = plain("own");
    const target = made(`test${count}`, "by-hand");
    execFileSync("mount", [
      ..."-t overlay overlay -o".split(" "),
      `lowerdir=${low},upperdir=${own.upper},workdir=${own.work},xino=on,index=off`,
      target,
    ]);
    mounted.push(target);
    shell("echo more >> one; echo more >> d/two", target);
    removeRootFilesystem(target);
    const root = mountOn([low], own);
    expect(root.hardLinks).toBe("kept");
    shell("echo two >> e/one; echo three >> three", root.target);
    const text = (name: string) => readFileSync(join(root.target, name), "utf8");
    expect(["one", "d/one", "e/one", "d/two", "two", "d/three"].map(text)).toEqual([
      "base\nmore\n",
      "base\ntwo\n",
      "base\ntwo\n",
      "base\nmore\n",
      "base\n",
      "base\nthree\n",
    ]);
  });
});

it("is not mounted while another overlay writes to its layers or to itself, unless it has to be", () => {
  const low = template();
  const own = plain("own");
  const first = mountOn([low], own);
  writeFileSync(join(first.target, "file"), "kept");
  expect(() => mountOn([low, own.upper], plain("above"), { mount: mountRootFilesystem })).toThrow(/EBUSY/);
  expect(() => mountOn([low], own, { mount: mountRootFilesystem })).toThrow(/EBUSY/);
  const target = made(`test${count}`, "forced");
  expect(mountRootFilesystem({ layers: [low, own.upper], ...plain("above"), target }, { force: true })).toBe("split");
  mounted.push(target);
  expect(readFileSync(join(target, "file"), "utf8")).toBe("kept");
});

it("is mounted where a layer's file system can't name files, and says that they are split", () => {
  const low = template();
  const below = mountOn([low, made(`test${count}`, "more")], plain("below"));
  const own = plain("own");
  const root = mountOn([below.target], own);
  expect(root.hardLinks).toBe("split");
  shell("echo more >> one", root.target);
  expect(readFileSync(join(root.target, "d/one"), "utf8")).toBe("base\n");
});

it("takes room to lose one of several names, unless the file was emptied before", async () => {
  const low = template("head -c 20000000 /dev/zero > big; ln big big-too; mkdir d; ln big d/big");
  const { target } = mountOn([low], await areas.create(newAreaId(), { sizeMb: 16, ownerId: 0 }));
  expect(() => shell("rm big", target)).toThrow(/No space left/);
  shell(": > big-too; rm big big-too", target);
  expect(lstatSync(join(target, "d/big"))).toMatchObject({ size: 0, nlink: 1 });
});
