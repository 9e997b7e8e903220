// The cache of steps in a folder: `<dir>/<scope>/<key>.json` is the result of a step, and `<dir>/<scope>/trails/<template>.json` is what the last
// build of a template did. A file's modification time is when it was last used.
//
// Failure policy: a file that is missing, damaged or of another version is a miss. The cache never makes a build fail.

import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { asError, type Clock, type Logger } from "@skerry/base";
import { syncDirectory } from "@skerry/base/linux";
import { type LayerDigest, type LayerStore, parseLayerDigest } from "@skerry/layers";
import type { BuildTrail, CachedStep, StepCache } from "./step-cache.ts";

export interface StepCacheOptions {
  /** Only the owner can look into it. It is created. */
  readonly dir: string;
  readonly layers: Pick<LayerStore, "has">;
  /** How long a result is kept that no build uses. */
  readonly keepMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

const TRAILS = "trails";
const VERSION = 1;

export async function openStepCache(options: StepCacheOptions): Promise<StepCache> {
  const cache = new FolderStepCache(options);
  await cache.open();
  return cache;
}

class FolderStepCache implements StepCache {
  readonly #options: StepCacheOptions;
  /** The layers of each result, by its file. */
  readonly #results = new Map<string, readonly LayerDigest[]>();
  /** Of all results; undefined after a change. */
  #layers: ReadonlySet<string> | undefined;

  constructor(options: StepCacheOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const { dir } = this.#options;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath, entry.name);
      if (entry.name.endsWith(".new")) await rm(file, { force: true });
      else if (entry.name.endsWith(".json") && basename(entry.parentPath) !== TRAILS) await this.#read(file);
    }
    await this.evict();
  }

  async find(scope: string, key: string): Promise<CachedStep | undefined> {
    const file = this.#fileOf(scope, key);
    const found = await this.#read(file);
    if (!found) return undefined;
    for (const layer of found.layers) {
      if (await this.#options.layers.has(layer)) continue;
      await this.#forget(file);
      return undefined;
    }
    await this.#touch(file);
    return found;
  }

  async put(scope: string, key: string, { layers, context }: CachedStep): Promise<void> {
    const file = this.#fileOf(scope, key);
    // Before the file: a layer that is removed in between would be a layer that a result needs.
    this.#note(file, layers);
    const { user, workdir, env } = context;
    await this.#write(file, { version: VERSION, layers, context: { user, workdir, env }, createdAt: this.#options.clock.now() });
  }

  async trail(scope: string, templateId: string): Promise<BuildTrail | undefined> {
    const file = this.#trailOf(scope, templateId);
    const trail = ((await readJson(file)) as { readonly trail?: BuildTrail } | undefined)?.trail;
    if (!Array.isArray(trail)) return undefined;
    await this.#touch(file);
    return trail;
  }

  async putTrail(scope: string, templateId: string, trail: BuildTrail): Promise<void> {
    await this.#write(this.#trailOf(scope, templateId), { version: VERSION, trail });
  }

  layers(): ReadonlySet<string> {
    this.#layers ??= new Set([...this.#results.values()].flat());
    return this.#layers;
  }

  #note(file: string, layers: readonly LayerDigest[] | undefined): void {
    this.#layers = undefined;
    if (layers) this.#results.set(file, layers);
    else this.#results.delete(file);
  }

  async evict(): Promise<void> {
    const { dir, keepMs, clock, logger } = this.#options;
    const oldest = clock.now() - keepMs;
    for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith(".json")) continue;
      const file = join(entry.parentPath, entry.name);
      const used = await stat(file).catch(() => undefined);
      if (!used || used.mtimeMs >= oldest) continue;
      await this.#forget(file);
      logger.debug({ file }, "a cached build step was not used for long, and is forgotten");
    }
  }

  async #read(file: string): Promise<CachedStep | undefined> {
    const found = await readJson(file);
    const step = found === undefined ? undefined : asCachedStep(found);
    if (step) this.#note(file, step.layers);
    else await this.#forget(file);
    return step;
  }

  async #forget(file: string): Promise<void> {
    this.#note(file, undefined);
    await rm(file, { recursive: true, force: true }).catch(() => {});
  }

  async #touch(file: string): Promise<void> {
    const now = this.#options.clock.now() / 1_000;
    await utimes(file, now, now).catch(() => {});
  }

  async #write(file: string, content: object): Promise<void> {
    const unfinished = `${file}.${randomBytes(6).toString("hex")}.new`;
    try {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      {
        await using handle = await open(unfinished, "wx", 0o600);
        await handle.writeFile(JSON.stringify(content));
        await handle.sync();
      }
      await rename(unfinished, file);
      syncDirectory(dirname(file));
      await this.#touch(file);
    } catch (error) {
      // A full disk: the build goes on, and the next one runs the step again.
      this.#note(file, undefined);
      await rm(unfinished, { force: true }).catch(() => {});
      this.#options.logger.warn({ err: asError(error), file }, "the result of a build step could not be cached");
    }
  }

  #fileOf(scope: string, key: string): string {
    return join(this.#options.dir, nameOf(scope), `${nameOf(key)}.json`);
  }

  #trailOf(scope: string, templateId: string): string {
    return join(this.#options.dir, nameOf(scope), TRAILS, `${nameOf(templateId)}.json`);
  }
}

/** A name for a file, whatever the text is. */
function nameOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 40);
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

function asCachedStep(content: unknown): CachedStep | undefined {
  const { version, layers, context } = (content ?? {}) as { version?: unknown; layers?: unknown; context?: Partial<CachedStep["context"]> };
  if (version !== VERSION || !Array.isArray(layers) || typeof context !== "object" || context === null) return undefined;
  const { user, workdir, env } = context;
  if (typeof user !== "string" || typeof workdir !== "string" || typeof env !== "object" || env === null) return undefined;
  try {
    return { layers: layers.map((layer) => parseLayerDigest(String(layer))), context: { user, workdir, env } };
  } catch {
    return undefined;
  }
}
