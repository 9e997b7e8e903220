// Builds of templates, beside buildah, and skopeo with umoci. All take turns, pull from one registry on this machine, and build the same
// Dockerfile. Only apt, pip and npm need a network.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { unmountBelow } from "@skerry/test-runner";
import { type Platform, prepareTestCache, startPlatform, startRegistry } from "@skerry/testkit";
import type { Bench, Measured } from "../bench.ts";
import { createSandbox, echo } from "../sdk.ts";
import { distribution, timed } from "../statistics.ts";
import { pushBaseImage, pushBigImage, writeBuildDirectory } from "./build-directory.ts";
import { type Builder, buildTemplate, copyAndUnpack, openBuildah, skerryBuilder } from "./contenders.ts";

const COLD_ROUNDS = 1;
const WARM_ROUNDS = 3;
const PULL_ROUNDS = 2;
const START_ROUNDS = 10;
const TEMPLATES = 10;

export const build: Bench = {
  name: "build",
  title: "Builds of templates",
  async run() {
    const cache = await prepareTestCache();
    const dir = mkdtempSync(join(cache.root, "runs", "bench-build-"));
    try {
      return await measure(dir, cache.root);
    } finally {
      // buildah leaves its storage mounted.
      await unmountBelow(dir);
      rmSync(dir, { recursive: true, force: true });
    }
  },
};

async function measure(dir: string, cacheRoot: string) {
  await using registry = await startRegistry();
  await using gvisor = await startPlatform({ runtime: "gvisor" });
  await using runc = await startPlatform({ runtime: "runc" });
  const image = await pushBaseImage(registry, { cacheRoot, dir });
  const builders = [skerryBuilder(gvisor, "gvisor"), skerryBuilder(runc, "runc"), await openBuildah(dir)];
  const context = join(dir, "context");
  writeBuildDirectory(context, image);

  const measured: Measured[] = [...(await measureBuilds(builders, context))];
  measured.push(...(await measureStart(gvisor, image, dir)));
  measured.push(...(await measureDisk(gvisor, image, dir)));
  const big = await pushBigImage(registry, { cacheRoot, dir });
  measured.push(...(await measurePull({ gvisor, runc }, big, dir)));

  const rows = measured.map(([name, unit, samples]) => ({ name, unit, ...distribution(samples), samples }));
  const p50 = (name: string) => rows.find((row) => row.name === name)?.p50 ?? Number.NaN;
  const ratio = (one: string, other: string) => (p50(one) / p50(other)).toFixed(2);
  const notes = ["cold", "unchanged", "last COPY changed"].map(
    (work) =>
      `${work}: ${ratio(`${work}, skerry on runc`, `${work}, buildah bud --layers`)} times buildah on runc, ` +
      `${ratio(`${work}, skerry on gvisor`, `${work}, buildah bud --layers`)} times on gVisor`,
  );
  notes.push(`pull and unpack: ${ratio("1 GB image, skerry on runc", "1 GB image, skopeo copy and umoci unpack")} times skopeo and umoci`);
  notes.push(`first output with a start command: ${ratio("first output, start command", "first output, plain")} times a plain sandbox`);
  return { rows, notes };
}

/** Cold, unchanged, and with another file in the last COPY. */
async function measureBuilds(builders: readonly Builder[], context: string): Promise<readonly Measured[]> {
  const rows = new Map<string, number[]>();
  const round = async (work: string, cold: boolean) => {
    for (const builder of builders) {
      const name = `${work}, ${builder.name}`;
      const samples = rows.get(name) ?? [];
      rows.set(name, samples);
      samples.push(shown(name, await builder.build(context, { cold })));
    }
  };
  for (let count = 0; count < COLD_ROUNDS; count++) await round("cold", true);
  for (let count = 0; count < WARM_ROUNDS; count++) await round("unchanged", false);
  for (let count = 0; count < WARM_ROUNDS; count++) {
    writeFileSync(join(context, "last.txt"), `change ${count}\n`);
    await round("last COPY changed", false);
  }
  return [...rows].map(([name, samples]) => [name, "ms", samples]);
}

/** Create and echo: of a template whose server runs already, and of one without a start command. */
async function measureStart(platform: Platform, image: string, dir: string): Promise<readonly Measured[]> {
  const directory = onlyDockerfile(join(dir, "start"), `FROM ${image}\n`);
  await buildTemplate(platform, { name: "plain", directory, flags: [] });
  const flags = ["--start-cmd", "python3 -m http.server 8000", "--ready-cmd", "curl -fs localhost:8000"];
  await buildTemplate(platform, { name: "started", directory, flags });
  const samples = { plain: [] as number[], started: [] as number[] };
  for (let round = -2; round < START_ROUNDS; round++) {
    for (const template of ["plain", "started"] as const) {
      let sandbox: Awaited<ReturnType<typeof createSandbox>> | undefined;
      const elapsed = await timed(async () => {
        sandbox = await createSandbox(platform, template);
        await echo(sandbox);
      });
      if (template === "started") await sandbox?.commands.run("curl -fs localhost:8000");
      await sandbox?.kill();
      if (round >= 0) samples[template].push(shown(`first output, ${template}`, elapsed));
    }
  }
  return [
    ["first output, plain", "ms", samples.plain],
    ["first output, start command", "ms", samples.started],
  ];
}

/** What the layers take on the disk: of one template, and of ten that differ in one step. */
async function measureDisk(platform: Platform, image: string, dir: string): Promise<readonly Measured[]> {
  const used = async () => {
    const { stdout } = await runCommand("du", ["-sm", join(platform.dataDir, "layers")], { timeoutMs: 60_000 });
    return Number(stdout.split("\t")[0]);
  };
  const base = await used();
  const build = async (index: number) => {
    const text = `FROM ${image}\nRUN head -c 50000000 /dev/urandom > /opt/large\nRUN echo ${index} > /opt/number\n`;
    await buildTemplate(platform, { name: `disk-${index}`, directory: onlyDockerfile(join(dir, `disk-${index}`), text), flags: [] });
  };
  await build(0);
  const one = await used();
  for (let index = 1; index < TEMPLATES; index++) await build(index);
  return [
    ["disk, one template with a step of 50 MB", "MB", [one - base]],
    [`disk, ${TEMPLATES} templates that differ in the last step`, "MB", [(await used()) - base]],
  ];
}

/** Skerry's time includes what a template needs beside its files: the user, and two sandboxes that prepare it. */
async function measurePull(
  platforms: { readonly gvisor: Platform; readonly runc: Platform },
  image: string,
  dir: string,
): Promise<readonly Measured[]> {
  const directory = onlyDockerfile(join(dir, "pull"), `FROM ${image}\n`);
  const once = (platform: Platform) => timed(() => buildTemplate(platform, { name: "pull", directory, flags: ["--no-cache"] }));
  const samples = { gvisor: [] as number[], runc: [] as number[], peer: [] as number[] };
  for (let round = 0; round < PULL_ROUNDS; round++) {
    samples.gvisor.push(shown("1 GB image, gvisor", await once(platforms.gvisor)));
    samples.runc.push(shown("1 GB image, runc", await once(platforms.runc)));
    samples.peer.push(shown("1 GB image, skopeo and umoci", await copyAndUnpack(image, dir)));
  }
  return [
    ["1 GB image, skerry on gvisor", "ms", samples.gvisor],
    ["1 GB image, skerry on runc", "ms", samples.runc],
    ["1 GB image, skopeo copy and umoci unpack", "ms", samples.peer],
  ];
}

/** Shows a sample at once: the whole benchmark takes minutes. */
function shown(name: string, milliseconds: number): number {
  console.error(`  ${name}: ${Math.round(milliseconds)} ms`);
  return milliseconds;
}

function onlyDockerfile(directory: string, text: string): string {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "Dockerfile"), text);
  return directory;
}
