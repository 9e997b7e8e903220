// Deletes volumes that are in the state `deleting` on their nodes, and gives up volumes that no process will finish creating.
// Failure policy: a volume that its node did not delete stays in `deleting`, and is tried again in every round.

import type { Clock, Logger } from "@skerry/base";
import type { Volume, VolumeRepository } from "@skerry/store";
import { NodeJobs } from "../nodes/node-queue.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { LeftOvers } from "../sandboxes/reconcile/left-overs.ts";

const AT_ONCE = 4;
const SCAN_LIMIT = 10_000;

export interface VolumeDeletionDeps {
  readonly volumes: VolumeRepository;
  readonly nodes: Nodes;
  readonly leftOvers: LeftOvers;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long a node may take for one deletion. */
  readonly timeoutMs: number;
  /** How long a create may take. */
  readonly longestCreateMs: number;
}

type Deletion = Pick<Volume, "id" | "nodeId">;

export class VolumeDeletions {
  readonly #deps: VolumeDeletionDeps;
  readonly #jobs: NodeJobs<Deletion>;
  constructor(deps: VolumeDeletionDeps) {
    this.#deps = deps;
    this.#jobs = new NodeJobs({
      atOnce: AT_ONCE,
      work: (volume) => this.#finish(volume),
      onFailure: ({ id, nodeId }, error) => {
        deps.logger.warn({ err: error, volume_id: id, node_id: nodeId }, "deleting a volume failed; will be tried again");
      },
    });
  }

  /** Deletes a volume in the background. Preconditions: it is in `deleting`. */
  begin(volume: Deletion): void {
    this.#jobs.runInBackground(volume);
  }

  /** Continues all deletions, and begins those of creates that were cut off. */
  async retry(): Promise<void> {
    const { volumes, leftOvers, clock, logger, longestCreateMs } = this.#deps;
    for (const { id, owner, nodeId } of await volumes.listUnsettled("creating", SCAN_LIMIT)) {
      if (!leftOvers.isLeft({ key: `volume/${id}`, owner, longestMs: longestCreateMs })) continue;
      if (await volumes.abandon(id, clock.now())) {
        logger.warn({ volume_id: id, node_id: nodeId }, "a volume whose create was cut off is deleted");
      }
    }
    for (const volume of await volumes.listUnsettled("deleting", SCAN_LIMIT)) this.begin(volume);
  }

  /** Waits for the running deletions and begins no others. */
  stop(): Promise<void> {
    return this.#jobs.stop();
  }

  async #finish({ id, nodeId }: Deletion): Promise<void> {
    const node = this.#deps.nodes.get(nodeId);
    // Whether sandboxes may mount it was decided with its row.
    await node.client.deleteVolume({ volumeId: id, force: true }, { timeoutMs: this.#deps.timeoutMs });
    await this.#deps.volumes.forget(id);
  }
}
