import { create } from "@bufbuild/protobuf";
import type { LayerDigest } from "@skerry/layers";
import { type BuildSpec, type StartCommand, StartCommandSchema } from "@skerry/wire/node";
import type { BuildDeps } from "./build-deps.ts";
import { BuildState } from "./build-state.ts";
import type { StepContext } from "./context.ts";
import { executeStep } from "./execute-step.ts";
import { asBuildFailure } from "./failure.ts";
import { DEFAULT_USER, finalizeFiles, startCommandOf } from "./finalize.ts";
import { keyOf } from "./keys.ts";
import { prepareSource } from "./sources/prepare-source.ts";

export interface BuiltTemplate {
  /** Lowest first. Held by `holderOfBuild`, until the caller releases it. */
  readonly layers: readonly LayerDigest[];
  /** What sandboxes run with by default. */
  readonly context: StepContext;
  readonly start?: StartCommand;
}

/** Builds a template. Throws BuildFailure; its cause is for the log of the operator. After a failure, the caller releases the layers too. */
export async function runBuild(spec: BuildSpec, deps: BuildDeps): Promise<BuiltTemplate> {
  const startedAt = performance.now();
  const progress = { step: "base" };
  const log = (level: "info" | "error", message: string) => deps.log({ level, step: "", message });
  try {
    log("info", `Building template ${spec.templateId}/${spec.buildId}`);
    const before = await deps.cache.trail(spec.cacheScope, spec.templateId);
    const build = new BuildState(spec, { deps, before });
    const built = await runPhases(build, progress);
    log("info", `Build finished, took ${duration(performance.now() - startedAt)}`);
    return built;
  } catch (error) {
    const failure = asBuildFailure(error, { ...progress, signal: deps.signal });
    log("error", `Build failed: ${failure.message}`);
    throw failure;
  }
}

async function runPhases(build: BuildState, progress: { step: string }): Promise<BuiltTemplate> {
  const { spec, deps } = build;
  const inherited = await prepareBase(build);
  try {
    for (const [index, step] of spec.steps.entries()) {
      progress.step = String(index + 1);
      await executeStep(build, index, step);
    }
  } finally {
    await deps.cache.putTrail(spec.cacheScope, spec.templateId, build.trail);
  }
  progress.step = "finalize";
  await finalizeFiles(build);
  const start = startCommandOf(build, inherited);
  if (start) await startTemplate(build, create(StartCommandSchema, start));
  const { layers } = build;
  const context = spec.withoutDefaultUser ? { ...build.context, user: DEFAULT_USER, workdir: "" } : build.context;
  return { layers, context, ...(start && { start: create(StartCommandSchema, start) }) };
}

/** The source, and the user that steps begin with. Returns the start command of the template that this one is based on. */
async function prepareBase(build: BuildState): Promise<StartCommand | undefined> {
  const { spec, deps, holder } = build;
  const { cacheScope: scope, buildId, templateId, force } = spec;
  const { size, runtime } = build.sandboxOptions();
  const source = await prepareSource(spec, { ...deps, buildId, templateId, scope, holder, size, runtime, force });
  build.layers = source.layers;
  build.context = source.context;
  if (spec.withoutDefaultUser) return source.start;
  // A source has this user already: there are no files to change.
  build.context = { ...source.context, user: DEFAULT_USER };
  const key = keyOf("default user", source.key, DEFAULT_USER);
  build.log("info", "base", `${source.isCached ? "CACHED " : ""}[base] DEFAULT USER ${DEFAULT_USER} [${key}]`);
  return source.start;
}

async function startTemplate(build: BuildState, start: StartCommand): Promise<void> {
  const { spec, deps } = build;
  const log = (message: string) => build.log("info", "finalize", message);
  if (start.command !== "") log(`Running start command: ${start.command}`);
  log(`Waiting for template to be ready: ${start.ready}`);
  await deps.host.prepareTemplate({ ...build.sandboxOptions(), start, force: spec.force, log: deps.log });
  log("Template is ready");
}

function duration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
