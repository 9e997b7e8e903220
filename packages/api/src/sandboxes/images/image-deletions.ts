// Has nodes let go of images whose entries are in `deleting`.
// Failure policy: what a node does not let go of stays in `deleting`, and is tried again at every round.

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

/** What it takes to delete an image. */
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
        deps.logger.warn({ err: error, image_id: id, node_id: nodeId }, "deleting an image failed and will be tried again");
      },
    });
  }

  /** Answers when the node has let go of it. Its entry must be in `deleting`. */
  finish(image: Deletion): Promise<void> {
    return this.#jobs.run(image);
  }

  /** Marks it as of no use, and has it deleted behind the caller's back. */
  async drop(image: Deletion): Promise<void> {
    await this.#deps.images.drop(image.id, this.#deps.clock.now());
    this.finishInBackground(image);
  }

  /** Where nobody waits: a failure is logged, and only so many run at once on a node. */
  finishInBackground(image: Deletion): void {
    this.#jobs.runInBackground(image);
  }

  /** Takes up what is left to delete, in the background. */
  async retry(): Promise<void> {
    for (const image of await this.#deps.images.listUnsettled("deleting", SCAN_LIMIT)) this.finishInBackground(image);
  }

  /** Answers when everything is over that is under way or waits for its turn, also what failed. */
  settled(): Promise<void> {
    return this.#jobs.settled();
  }

  /** Waits for what is under way, and begins no more of what waits. */
  stop(): Promise<void> {
    return this.#jobs.stop();
  }

  async #finish(image: Deletion): Promise<void> {
    const node = this.#deps.nodes.get(image.nodeId);
    await node.client.deleteImage({ imageId: image.id }, { timeoutMs: this.#deps.timeoutMs });
    await this.#deps.images.forget(image.id);
  }
}
