import { randomUUID } from "node:crypto";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createLogger, systemClock } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import {
  type BuildDeps,
  type BuildFailure,
  type BuiltTemplate,
  holderOfBuild,
  openStepCache,
  runBuild,
  type StepCache,
} from "@skerry/builder";
import type { LayerDigest } from "@skerry/layers";
import { testCacheDir } from "@skerry/testkit";
import { BuildSpecSchema, type BuildStepSchema } from "@skerry/wire/node";
import { type NodeUnderTest, startNode } from "./node-under-test.ts";

type SpecFields = Exclude<MessageInitShape<typeof BuildSpecSchema>, { $typeName: string }>;
export type StepFields = Exclude<MessageInitShape<typeof BuildStepSchema>, { $typeName: string }>;

export interface TestBuild {
  /** Undefined if it failed. */
  readonly built: BuiltTemplate | undefined;
  readonly failure: BuildFailure | undefined;
  /** "level step message". */
  readonly log: readonly string[];
  /** Sandboxes that it started. */
  readonly sandboxes: number;
}

export interface BuildsUnderTest extends AsyncDisposable {
  readonly under: NodeUnderTest;
  readonly deps: Omit<BuildDeps, "log" | "signal">;
  /** The layers of the template `base`. */
  readonly base: readonly LayerDigest[];
  /** A build that is based on the template `base`. */
  build(steps: readonly StepFields[], fields?: SpecFields, deps?: Partial<BuildDeps>): Promise<TestBuild>;
}

export const step = (type: string, ...args: string[]): StepFields => ({ type, args });

/** Real builds on a real node, from the base template of the test cache. It is built once, so that later builds need not configure it. */
export async function startBuilds(runtime: "gvisor" | "runc"): Promise<BuildsUnderTest> {
  const under = await startNode(runtime);
  const { layers } = under.config;
  let base = useBaseTemplate(under);
  const cache: StepCache = await openStepCache({
    dir: join(under.config.dir, "../build-cache"),
    layers,
    keepMs: 86_400_000,
    clock: systemClock,
    logger: createLogger({ name: "builds-under-test", level: "error", fd: 2 }),
  });
  const blobs = await openFolderBlobStore(join(under.config.dir, "../blobs"));
  let sandboxes = 0;
  const host: BuildDeps["host"] = {
    async startSandbox(options) {
      sandboxes += 1;
      return await under.node.buildHost.startSandbox(options);
    },
    prepareTemplate: (options) => under.node.buildHost.prepareTemplate(options),
    layersOfImage: (imageId, options) => under.node.buildHost.layersOfImage(imageId, options),
  };
  const deps = { host, layers, blobs, cache, images: { pullDir: join(under.config.dir, "../pull") } };
  const build: BuildsUnderTest["build"] = async (steps, fields = {}, overrides = {}) => {
    const buildId = randomUUID();
    const size = { cpuCount: 1, memoryMb: 512, diskSizeMb: 512 };
    const source = { case: "template" as const, value: { name: "base", layers: base } };
    const spec = create(BuildSpecSchema, { buildId, templateId: "t", cacheScope: "team", source, steps: [...steps], ...size, ...fields });
    const log: string[] = [];
    const before = sandboxes;
    const signal = new AbortController().signal;
    const add: BuildDeps["log"] = ({ level, step: of, message }) => void log.push(`${level} ${of} ${message}`);
    const [end] = await Promise.allSettled([runBuild(spec, { ...deps, log: add, signal, ...overrides })]);
    layers.release(holderOfBuild(buildId));
    const built = end?.status === "fulfilled" ? end.value : undefined;
    const failure = end?.status === "rejected" ? (end.reason as BuildFailure) : undefined;
    return { built, failure, log, sandboxes: sandboxes - before };
  };
  base = [...((await build([], { templateId: "base" })).built?.layers ?? [])];
  return { under, deps, base, build, [Symbol.asyncDispose]: () => under[Symbol.asyncDispose]() };
}

function useBaseTemplate({ config }: NodeUnderTest): LayerDigest[] {
  const cache = testCacheDir();
  const { layers } = JSON.parse(readFileSync(join(cache, "templates/base.json"), "utf8")) as { layers: LayerDigest[] };
  for (const digest of layers) {
    const short = digest.slice("sha256:".length, "sha256:".length + 24);
    for (const name of [short, `${short}.json`]) symlinkSync(join(cache, "layers", name), join(config.dir, "../layers", name));
  }
  return layers;
}
