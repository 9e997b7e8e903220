// The builder on this node: what it gets, and where it keeps its cache.

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Logger, Secret, systemClock } from "@skerry/base";
import { type BuildHost, openStepCache, runBuild, type StepCache } from "@skerry/builder";
import type { NodeConfig } from "../config.ts";
import { hostVariables } from "../network/site-network.ts";
import type { Builder } from "./builds.ts";

const DAY_MS = 86_400_000;
const EVICT_EVERY_MS = 3_600_000;

export interface CachingBuilder extends Builder {
  readonly cache: StepCache;
}

/** Opens the cache of steps, and removes what builds of a former process were pulling. Preconditions: no build runs. */
export async function openBuilder(config: NodeConfig, host: BuildHost, logger: Logger): Promise<CachingBuilder | undefined> {
  const { builds, layers, agents } = config;
  if (!builds) return undefined;
  const pullDir = join(config.dir, "build-pulls");
  await rm(pullDir, { recursive: true, force: true });
  await mkdir(pullDir, { mode: 0o700 });
  const registries = { ...config.images?.registries, env: new Secret(hostVariables(config)) };
  const images = { ...config.images, pullDir, registries };
  const keepMs = builds.cacheDays * DAY_MS;
  const cache = await openStepCache({ dir: join(config.dir, "build-cache"), layers, keepMs, clock: systemClock, logger });
  const eviction = setInterval(() => {
    cache.evict().catch((error: unknown) => logger.warn({ err: error }, "cached build steps could not be evicted"));
  }, EVICT_EVERY_MS).unref();
  return {
    cache,
    async run({ spec, signal, log }) {
      const built = await runBuild(spec, { host, layers, blobs: builds.blobs, cache, images, log, signal });
      const { user, workdir, env } = built.context;
      return {
        layers: [...built.layers],
        context: { user, workdir, env: { ...env } },
        ...(built.start && { start: built.start }),
        agentVersion: agents.current.version,
      };
    },
    close: () => clearInterval(eviction),
  };
}
