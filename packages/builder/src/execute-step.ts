import { parseBlobDigest } from "@skerry/blobs";
import type { BuildStep } from "@skerry/wire/node";
import type { BuildSandbox } from "./build-host.ts";
import type { BuildState } from "./build-state.ts";
import type { CachedStep, TrailStep } from "./cache/step-cache.ts";
import { keyOf } from "./keys.ts";
import { cut } from "./log/cut.ts";
import { shortenChain } from "./merge-chain.privileged.ts";
import { planStep } from "./steps/plan-step.ts";
import { type StepPlan, type StepTools, variablesKey } from "./steps/step.ts";
import { FAILED_KEY, whyNotCached } from "./why-not-cached.ts";

/** Increment it when a step of the same type and arguments leaves something else than before. */
const STEPS_VERSION = 1;

/** Of the arguments of a step, in the log. */
const MOST_SHOWN = 4_000;

/** Uses the cached result of a step, or runs it and caches the result. Throws StepFailure. `index` counts from 0. */
export async function executeStep(build: BuildState, index: number, given: BuildStep): Promise<void> {
  const step = { ...given, type: given.type.toUpperCase() };
  const prefix = `builder ${index + 1}/${build.spec.steps.length}`;
  const name = String(index + 1);
  build.forced ||= step.force;
  const done = { type: step.type, args: keyOf(step.args), filesHash: step.filesHash, state: stateOf(build) };
  try {
    const plan = planStep(step, build.context);
    const key = ownKey(build, keyOf("step", STEPS_VERSION, build.layers, step.type, plan.inputs));
    const title = `[${prefix}] ${cut([step.type, ...step.args].join(" "), MOST_SHOWN)} [${key}]`;
    const cached = await build.findCached(key);
    build.log("info", name, cached ? `CACHED ${title}` : title);
    if (cached) await build.moveTo({ layers: cached.layers, context: plan.resume(cached.context) });
    else {
      const why = whyNotCached({ index, step: { ...done, key }, isForced: build.forced, before: build.before });
      build.log("info", name, `[${prefix}] not cached: ${why}`);
      await build.moveTo(await runPlan(build, plan, { name, prefix }));
      await build.deps.cache.put(build.spec.cacheScope, key, build);
    }
    build.trail.push({ ...done, key });
  } catch (error) {
    build.trail.push({ ...done, key: FAILED_KEY });
    throw error;
  }
}

function stateOf({ layers, context: { user, workdir, env } }: BuildState): string {
  return keyOf(layers, user, workdir, variablesKey(env));
}

/** The same step twice in a row is run twice, even if the first one changed nothing. */
function ownKey(build: BuildState, key: string): string {
  const taken = new Set(build.trail.map((step: TrailStep) => step.key));
  let own = key;
  for (let count = 1; taken.has(own); count += 1) own = keyOf("again", key, count);
  return own;
}

interface StepNames {
  readonly name: string;
  readonly prefix: string;
}

async function runPlan(build: BuildState, plan: StepPlan, { name, prefix }: StepNames): Promise<CachedStep> {
  const { deps } = build;
  let starting: Promise<BuildSandbox> | undefined;
  const tools: StepTools = {
    signal: deps.signal,
    sandbox() {
      starting ??= deps.host.startSandbox(build.sandboxOptions());
      return starting;
    },
    archive: (digest) => deps.blobs.get(parseBlobDigest(digest)),
    log: (level, message) => build.log(level, name, `[${prefix}] ${message}`),
  };
  try {
    deps.signal.throwIfAborted();
    const { context, wrote } = await plan.run(tools);
    const sandbox = wrote ? await starting : undefined;
    return { layers: sandbox ? await commit(build, sandbox) : build.layers, context };
  } finally {
    // Does nothing after a commit.
    await starting?.then((sandbox) => sandbox.discard()).catch(() => {});
  }
}

/** The chain with what a sandbox wrote. */
export async function commit(build: BuildState, sandbox: BuildSandbox): Promise<CachedStep["layers"]> {
  const { deps, holder } = build;
  const layer = await sandbox.commit(holder);
  if (layer === undefined) return build.layers;
  return await shortenChain([...build.layers, layer], { layers: deps.layers, holder, limits: deps.chainLimits });
}
