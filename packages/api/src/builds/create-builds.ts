import type { Clock, Logger, Secret } from "@skerry/base";
import type { BlobStore } from "@skerry/blobs";
import type { ApiConfig } from "../config.ts";
import type { SandboxDeps } from "../sandboxes/deps.ts";
import { BuildService } from "./build-service.ts";
import { BuildCredentials } from "./credentials.ts";
import { BuildScheduler } from "./scheduler.ts";
import { UploadCleaner } from "./upload-cleaner.ts";
import { BuildUploads } from "./uploads.ts";

export interface BuildsDeps {
  readonly work: SandboxDeps;
  readonly blobs: BlobStore;
  readonly secrets: { readonly tokenSeed: Secret };
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Builds {
  readonly builds: BuildService;
  readonly uploads: BuildUploads;
  readonly scheduler: BuildScheduler;
  readonly cleaner: UploadCleaner;
}

const DAY_MS = 24 * 3_600_000;

/** Everything about builds. */
export function createBuilds(config: ApiConfig, { work, blobs, secrets, clock, logger }: BuildsDeps): Builds {
  const { store, timing, limits } = work;
  const scheduler = new BuildScheduler({ ...work, config, credentials: new BuildCredentials() });
  const shared = { buildFiles: store.buildFiles, blobs, clock, logger };
  return {
    scheduler,
    builds: new BuildService({ ...store, scheduler, limits, clock }),
    uploads: new BuildUploads({
      ...shared,
      templates: store.templates,
      tokenSeed: secrets.tokenSeed,
      linkMs: timing.uploadLinkMs,
      maxBytes: config.maxUploadMb * 1024 * 1024,
      publicUrl: config.publicUrl,
    }),
    cleaner: new UploadCleaner({
      ...shared,
      buildLogs: store.buildLogs,
      keepMs: config.buildCacheDays * DAY_MS,
      keepLogsMs: timing.keepBuildLogsMs,
      lookMs: timing.uploadLookMs,
    }),
  };
}
