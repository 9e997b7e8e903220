// Deletes logs of builds that ended long ago, uploads that were not used for some days, and blobs that no upload and no build refers to. A blob is deleted when two looks in a
// row found it unused: the first one may fall between the moment when a blob is complete and the one when its upload is recorded.

import type { Clock, Logger } from "@skerry/base";
import { type BlobDigest, type BlobStore, parseBlobDigest } from "@skerry/blobs";
import type { BuildFileRepository, BuildLogRepository } from "@skerry/store";
import { RepeatedWork } from "../repeated-work.ts";

const PAGE = 500;

export interface UploadCleanerDeps {
  readonly buildFiles: BuildFileRepository;
  readonly buildLogs: BuildLogRepository;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keepMs: number;
  readonly keepLogsMs: number;
  readonly lookMs: number;
}

export class UploadCleaner {
  readonly #deps: UploadCleanerDeps;
  #unused: ReadonlySet<string> = new Set();
  readonly #rounds: RepeatedWork;
  constructor(deps: UploadCleanerDeps) {
    this.#deps = deps;
    this.#rounds = new RepeatedWork({
      work: () => this.look(),
      pauseMs: deps.lookMs,
      onError: (error) => deps.logger.warn({ err: error }, "looking for unused uploads failed"),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  /** One look at all blobs. */
  async look(): Promise<void> {
    const { buildFiles, buildLogs, blobs, clock, logger, keepMs, keepLogsMs } = this.#deps;
    await buildLogs.forget(clock.now() - keepLogsMs);
    await buildFiles.forgetUnused(clock.now() - keepMs);
    const unused = new Set<string>();
    let removed = 0;
    for (let after: BlobDigest | undefined; ; ) {
      const page = await blobs.list({ limit: PAGE, ...(after === undefined ? {} : { after }) });
      for (const blob of await buildFiles.filterUnused(page)) {
        const isRemoved = this.#unused.has(blob) && (await buildFiles.removeUnused(blob, () => blobs.delete(parseBlobDigest(blob))));
        if (isRemoved) removed += 1;
        else unused.add(blob);
      }
      after = page.at(-1);
      if (page.length < PAGE) break;
    }
    this.#unused = unused;
    if (removed > 0) logger.info({ count: removed }, "uploads that no build refers to were removed");
  }
}
