import type { LayerDigest } from "@skerry/layers";
import type { BuildSpec } from "@skerry/wire/node";
import type { BuildDeps } from "./build-deps.ts";
import type { BuildHost, LogLevel } from "./build-host.ts";
import type { BuildTrail, CachedStep, TrailStep } from "./cache/step-cache.ts";
import type { StepContext } from "./context.ts";

/** A build under way. Its layers are held by `holder`. */
export class BuildState {
  readonly spec: BuildSpec;
  readonly deps: BuildDeps;
  readonly holder: string;
  /** Of the template's last build in this scope. */
  readonly before: BuildTrail | undefined;
  readonly trail: TrailStep[] = [];
  /** No cached result is used from here on. */
  forced: boolean;
  layers: readonly LayerDigest[] = [];
  context: StepContext = { user: "root", workdir: "", env: {} };

  constructor(spec: BuildSpec, { deps, before }: { readonly deps: BuildDeps; readonly before: BuildTrail | undefined }) {
    this.spec = spec;
    this.deps = deps;
    this.holder = holderOfBuild(spec.buildId);
    this.before = before;
    this.forced = spec.force;
  }

  log(level: LogLevel, step: string, message: string): void {
    this.deps.log({ level, step, message });
  }

  /** What every sandbox of this build is started with. */
  sandboxOptions(): Parameters<BuildHost["startSandbox"]>[0] {
    const { buildId, templateId, cpuCount, memoryMb, diskSizeMb, runtime } = this.spec;
    return { buildId, templateId, layers: this.layers, size: { cpuCount, memoryMb, diskSizeMb }, runtime, signal: this.deps.signal };
  }

  /** A cached result whose layers are held now. */
  async findCached(key: string): Promise<CachedStep | undefined> {
    if (this.forced) return undefined;
    const found = await this.deps.cache.find(this.spec.cacheScope, key);
    if (!found) return undefined;
    if (await this.deps.layers.hold(this.holder, [...new Set([...this.layers, ...found.layers])])) return found;
    await this.deps.layers.hold(this.holder, this.layers);
    return undefined;
  }

  /** Makes a result that is held the state of the build, and lets go of everything else. */
  async moveTo({ layers, context }: CachedStep): Promise<void> {
    this.layers = layers;
    this.context = context;
    await this.deps.layers.hold(this.holder, layers);
  }
}

/** The name under which a build holds its layers. */
export function holderOfBuild(buildId: string): string {
  return `build-${buildId}`;
}
