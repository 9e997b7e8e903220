// Deletes images that are in the state `deleting` on their nodes.
// Failure policy: an image that its node did not delete stays in `deleting`, and is tried again in every round.

import type { Clock, Logger } from "@skerry/base";
import type { Image, ImageRepository } from "@skerry/store";
import { NodeJobs } from "../../nodes/node-queue.ts";
import type { Nodes } from "../../nodes/nodes.ts";

const AT_ONCE = 8;
const SCAN_LIMIT = 10_000;

export interface ImageDeletionDeps {
  readonly images: ImageRepository;
  readonly nodes: Nodes;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timeoutMs: number;
}

/** The fields of an image that its deletion needs. */
type Deletion = Pick<Image, "id" | "nodeId">;

export class ImageDeletions {
  readonly #deps: ImageDeletionDeps;
  readonly #jobs: NodeJobs<Deletion>;
  constructor(deps: ImageDeletionDeps) {
    this.#deps = deps;
    this.#jobs = new NodeJobs({
      atOnce: AT_ONCE,
      work: (image) => this.#finish(image),
      onFailure: ({ id, nodeId }, error) => {
        deps.logger.warn({ err: error, image_id: id, node_id: nodeId }, "deleting an image failed; will be tried again");
      },
    });
  }

  /** Resolves when the node has deleted the image. Preconditions: it is in `deleting`. */
  finish(image: Deletion): Promise<void> {
    return this.#jobs.run(image);
  }

  /** Moves the image to `deleting`, and deletes it in the background. */
  async drop(image: Deletion): Promise<void> {
    await this.#deps.images.drop(image.id, this.#deps.clock.now());
    this.finishInBackground(image);
  }

  /** Like `finish`, without a caller that waits: failures are logged, and a node gets a limited number at the same time. */
  finishInBackground(image: Deletion): void {
    this.#jobs.runInBackground(image);
  }

  /** Continues all deletions in the background. */
  async retry(): Promise<void> {
    for (const image of await this.#deps.images.listUnsettled("deleting", SCAN_LIMIT)) this.finishInBackground(image);
  }

  /** Resolves when all running and queued deletions have ended, also those that failed. */
  settled(): Promise<void> {
    return this.#jobs.settled();
  }

  /** Waits for the running deletions and begins no others. */
  stop(): Promise<void> {
    return this.#jobs.stop();
  }

  async #finish(image: Deletion): Promise<void> {
    const node = this.#deps.nodes.get(image.nodeId);
    await node.client.deleteImage({ imageId: image.id }, { timeoutMs: this.#deps.timeoutMs });
    await this.#deps.images.forget(image.id);
  }
}
