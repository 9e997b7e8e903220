import type { Clock } from "@skerry/base";
import type { EventRepository, PlatformCountRepository, PlatformCounts } from "@skerry/store";

export interface PlatformStatus extends PlatformCounts {
  /** Round trip of the simplest query. */
  readonly databaseMs: number;
  /** Age of the oldest event that no reader can see yet. */
  readonly eventLagMs: number;
  /** Of this API process. */
  readonly uptimeMs: number;
  readonly memoryBytes: number;
}

export class StatusService {
  readonly #deps: { readonly counts: PlatformCountRepository; readonly events: EventRepository; readonly clock: Clock };
  constructor(deps: { readonly counts: PlatformCountRepository; readonly events: EventRepository; readonly clock: Clock }) {
    this.#deps = deps;
  }

  async read(): Promise<PlatformStatus> {
    const { counts, events, clock } = this.#deps;
    const begun = performance.now();
    await counts.ping();
    const databaseMs = performance.now() - begun;
    const [counted, eventLagMs] = await Promise.all([counts.read(), events.lagMs(clock.now())]);
    return { ...counted, databaseMs, eventLagMs, uptimeMs: process.uptime() * 1000, memoryBytes: process.memoryUsage.rss() };
  }
}
