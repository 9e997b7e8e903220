// Has nodes forget builds that have ended. A node keeps the layers of a build until then, so nothing of a build that is ready can be collected
// before its row says that it is.

import { NodeJobs } from "../nodes/node-queue.ts";
import type { BuildDeps } from "./deps.ts";

const AT_ONCE = 8;
const SCAN_LIMIT = 1_000;

interface Held {
  readonly id: string;
  readonly nodeId: string;
  readonly runs: boolean;
}

export class BuildReleases {
  readonly #deps: BuildDeps;
  readonly #jobs: NodeJobs<Held>;
  /** By build: when a failed release is tried again. */
  readonly #notBefore = new Map<string, number>();
  constructor(deps: BuildDeps) {
    this.#deps = deps;
    this.#jobs = new NodeJobs({
      atOnce: AT_ONCE,
      work: (held) => this.#release(held),
      onFailure: ({ id, nodeId }, error) => {
        this.#notBefore.set(id, performance.now() + deps.timing.buildRetryMs * 10);
        deps.logger.warn({ err: error, build_id: id, node_id: nodeId }, "ending a build on its node failed; will be tried again");
      },
    });
  }

  /** Begins to release everything that is to be released. */
  async look(): Promise<void> {
    const now = performance.now();
    for (const [id, at] of this.#notBefore) if (at < now) this.#notBefore.delete(id);
    for (const { id, nodeId, status } of await this.#deps.store.builds.listHeld(SCAN_LIMIT)) {
      if (nodeId === undefined || this.#notBefore.has(id) || !this.#deps.nodes.find(nodeId)) continue;
      this.#jobs.runInBackground({ id, nodeId, runs: status === "error" });
    }
  }

  settled(): Promise<void> {
    return this.#jobs.settled();
  }

  stop(): Promise<void> {
    return this.#jobs.stop();
  }

  async #release({ id, nodeId, runs }: Held): Promise<void> {
    const { client } = this.#deps.nodes.get(nodeId);
    const { killTimeoutMs: timeoutMs } = this.#deps.timing;
    if (runs) await client.cancelBuild({ buildId: id }, { timeoutMs });
    await client.forgetBuild({ buildId: id }, { timeoutMs });
    await this.#deps.store.builds.released(id);
  }
}
