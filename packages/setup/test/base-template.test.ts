import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { openLayerStore, parseLayerDigest } from "@skerry/layers";
import { type BaseTemplate, ensureBaseTemplate } from "@skerry/setup";
import type { DataFolder } from "@skerry/setup/folder";
import { createTestDataFolder, startRegistry, type TestRegistry, tarArchive, testCacheDir } from "@skerry/testkit";
import { sampleOrNone } from "@skerry/testkit/depth";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aptTransportOptions } from "../src/base/apt-options.ts";
import { detectDistribution } from "../src/base/distribution.ts";

/** Two package installations: half a minute on a machine with nothing else to do. */
const MAKING_LIMIT_MS = 900_000;
const REPO_ROOT = join(import.meta.dirname, "../../..");
// On a disk: a tree of thousands of files, with owners and set-uid programs.
const dir = mkdtempSync("/var/tmp/skerry-base-");
let registry: TestRegistry;
const folders: DataFolder[] = [];
beforeAll(async () => {
  registry = await startRegistry();
});
afterAll(async () => {
  await registry.stop();
  for (const { root } of folders) rmSync(root, { recursive: true, force: true });
  rmSync(dir, { recursive: true, force: true });
});

/** Makes the template, and stops where it would go on with this machine's package archive, which other tests do. */
async function ensure(folder: DataFolder, baseImage: string | undefined) {
  const said: string[] = [];
  const controller = new AbortController();
  const report = (doing: string) => {
    said.push(doing);
    if (doing.startsWith("unpacking the distribution")) controller.abort(new Error("not from the archive"));
  };
  const result = await ensureBaseTemplate(folder, {
    repoRoot: REPO_ROOT,
    baseImage,
    runtime: "gvisor",
    env: {},
    report,
    signal: controller.signal,
  }).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
  return { said, result };
}

/** A small image of this machine's own distribution, kept in the tests' cache for a week: what is installed on top is always of today. */
async function distributionImage(): Promise<string> {
  const { codename, buildSources } = await detectDistribution();
  const tar = join(testCacheDir(), `${codename}.tar`);
  const isFresh = existsSync(tar) && Date.now() - statSync(tar).mtimeMs < 7 * 24 * 3_600_000;
  if (isFresh) return tar;
  const options = ['Acquire::Retries "3";', ...(await aptTransportOptions())].map((option) => `--aptopt=${option}`);
  const made = join(dir, "image.tar");
  const args = ["--quiet", "--variant=apt", "--mode=root", "--format=tar", ...options, codename, made, ...buildSources];
  await runCommand("mmdebstrap", args, { timeoutMs: MAKING_LIMIT_MS });
  // Whole or not there, whoever looks.
  copyFileSync(made, `${tar}.${process.pid}`);
  renameSync(`${tar}.${process.pid}`, tar);
  rmSync(made);
  return tar;
}

/** With a runtime and an agent, and without a base template. */
async function newFolder(name: string): Promise<DataFolder> {
  const folder = await createTestDataFolder(`base-template-${process.pid}-${name}`);
  folders.push(folder);
  rmSync(folder.templateFile);
  return folder;
}
const readTemplate = (folder: DataFolder) => JSON.parse(readFileSync(folder.templateFile, "utf8")) as BaseTemplate;

/** It takes as long as all other tests of this package together. Templates that builds start from images are tested with the node. */
const IMAGES = sampleOrNone("base templates from an image", ["an image"], () => false);

describe.each(IMAGES)("from %s", () => {
  const outside = join(dir, "outside");
  let folder: DataFolder;
  let reference: string;
  let root: string;
  beforeAll(async () => {
    const { codename, id } = await detectDistribution();
    const tar = await distributionImage();
    mkdirSync(outside);
    // With links in the way of everything that is written into it.
    const traps = ["etc/hostname", "etc/resolv.conf", "etc/hosts", "root/.profile", "usr/local/bin/node", "etc/sudoers.d/user"];
    const layer = tarArchive(traps.map((path) => ({ path, type: "symlink", target: join(outside, path.replaceAll("/", "-")) })));
    for (const path of traps) writeFileSync(join(outside, path.replaceAll("/", "-")), "as it was");
    reference = await registry.push(`${id}:${codename}`, { layers: [readFileSync(tar), layer] });
    folder = await newFolder("good");
    const { result, said } = await ensure(folder, reference);
    if (result instanceof Error) throw new Error(said.join("; "), { cause: result });
    expect(result.built).toBe(true);
    const store = await openLayerStore(folder.layersDir);
    root = await store.path(parseLayerDigest(result.template.layers[0] ?? ""));
  }, MAKING_LIMIT_MS);

  const inside = async (...command: string[]) => (await runCommand("chroot", [root, ...command], { timeoutMs: 60_000 })).stdout.trim();

  it("records which one, by digest", async () => {
    const answer = await fetch(`http://${registry.host}/v2/${reference.split("/")[1]?.replace(":", "/manifests/")}`, {
      headers: { accept: "application/vnd.oci.image.manifest.v1+json" },
    });
    const digest = answer.headers.get("docker-content-digest");
    expect(readTemplate(folder)).toMatchObject({ wantedImage: reference, origin: { from: "image", reference, digest } });
  });

  it("has no trace of its making", () => {
    for (const path of ["var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log", "tmp", "run", "mnt", "proc"]) {
      expect([path, readdirSync(join(root, path))]).toEqual([path, []]);
    }
    expect(readdirSync(join(root, "etc/apt/apt.conf.d"))).not.toContain("99mmdebstrap");
    expect(readFileSync(join(root, "etc/resolv.conf"), "utf8")).toBe("");
    expect(readFileSync(join(root, "etc/machine-id"), "utf8")).toBe("");
    for (const used of [folder.workDir, folder.buildNodesDir]) expect(readdirSync(used)).toEqual([]);
    expect(readdirSync(join(folder.layersDir, "staging"))).toEqual([]);
  });

  it("has what the recipe promises", async () => {
    expect(await inside("/usr/local/bin/node", "--version")).toBe(process.version);
    expect(await inside("npm", "--version")).toMatch(/^\d+\./);
    expect(await inside("python", "-c", "import venv, pip; print(1 + 1)")).toBe("2");
    expect(await inside("id", "user")).toMatch(/^uid=1000\(user\) gid=1000\(user\) groups=.*\(sudo\)$/);
    for (const program of ["git", "curl", "ps", "ss", "bash"]) expect(await inside("which", program)).toContain(program);
    expect(statSync(join(root, "usr/bin/sudo")).mode & 0o7777).toBe(0o4755);
    expect(statSync(join(root, "home/user")).uid).toBe(1000);
    expect(readFileSync(join(root, "etc/sudoers.d/user"), "utf8")).toContain("NOPASSWD");
    expect(statSync(join(root, "etc/sudoers.d/user")).mode & 0o777).toBe(0o440);
    expect(await inside("sh", "-c", ". /etc/profile; echo $PATH")).toContain("/usr/local/sbin");
    const listens = "process.listenerCount('SIGURG')";
    expect(await inside("sh", "-c", `. /etc/profile; node -p "${listens}"`)).toBe("1");
    expect(await inside("python3", "-c", "import signal; print(callable(signal.getsignal(signal.SIGURG)))")).toBe("True");
    expect(await inside("update-ca-certificates", "--verbose")).toContain("done");
  });

  it("was written to from inside: its links led nowhere", () => {
    for (const name of readdirSync(outside)) expect([name, readFileSync(join(outside, name), "utf8")]).toEqual([name, "as it was"]);
    expect(() => readlinkSync(join(root, "usr/local/bin/node"))).toThrow(/EINVAL/);
  });

  it("is kept while nothing else is wanted, whether there is a registry or not", async () => {
    const { result, said } = await ensure(folder, undefined);
    expect(result).toMatchObject({ built: false, template: { wantedImage: reference } });
    expect(await ensure(folder, reference)).toMatchObject({ result: { built: false } });
    expect(said).toEqual([]);
  });

  it("stays when another is wanted that can't be had, and this machine's archive can't be used either", async () => {
    const before = readTemplate(folder);
    const { result, said } = await ensure(folder, `${registry.host}/absent:1`);
    expect(result).toMatchObject({ message: "not from the archive" });
    expect(said).toContainEqual(expect.stringMatching(/^the image can't be used: .*no such image/));
    expect(readTemplate(folder)).toEqual(before);
    expect(readdirSync(join(folder.layersDir, "staging"))).toEqual([]);
    expect(readdirSync(folder.workDir)).toEqual([]);
  });
});

describe("goes on with this machine's package archive, and says why", () => {
  it.each<[string, () => Promise<string> | string, RegExp]>([
    ["nobody answers", () => "127.0.0.1:1/debian:12", /the registry can't be reached/],
    [
      "the image is of another distribution",
      () => registry.push("alpine:3", { layers: [tarArchive([{ path: "etc/os-release", content: "ID=alpine\nPRETTY_NAME=Alpine\n" }])] }),
      /needs Debian or Ubuntu/,
    ],
    [
      "the image is no system at all, and its folders are links",
      () =>
        registry.push("links:1", {
          layers: [tarArchive(["proc", "dev", "mnt", "etc", "bin", "usr"].map((path) => ({ path, type: "symlink", target: tmpdir() })))],
        }),
      /needs Debian or Ubuntu/,
    ],
  ])("when %s", async (name, image, why) => {
    const folder = await newFolder(name.replaceAll(/\W/g, "-"));
    const { result, said } = await ensure(folder, await image());
    expect(result).toMatchObject({ message: "not from the archive" });
    expect(said).toContainEqual(expect.stringMatching(why));
    expect(readdirSync(join(folder.layersDir, "staging"))).toEqual([]);
    expect(readdirSync(join(folder.layersDir, "locks")).filter((lock) => lock.startsWith("staging-"))).toEqual([]);
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(folder.root);
  });
});

it("refuses a setting that names no image", async () => {
  const { result } = await ensure(await newFolder("mistake"), "not an image");
  expect(result).toMatchObject({ exit: "usage", message: expect.stringContaining("SKERRY_BASE_IMAGE") });
});
