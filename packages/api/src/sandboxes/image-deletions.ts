// Has nodes let go of images whose entries are in `deleting`.
// Failure policy: what a node does not let go of stays in `deleting`, and is tried again at every round.

import type { Clock, Logger } from "@skerry/base";
import type { Image, ImageRepository } from "@skerry/store";
import { findNode } from "../nodes/find-node.ts";
import type { NodeDirectory } from "./ports.ts";

const AT_ONCE = 8;
const LIMIT = 1_000;

export interface ImageDeletionDeps {
  readonly images: ImageRepository;
  readonly nodes: NodeDirectory;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timeoutMs: number;
}

export class ImageDeletions {
  readonly #deps: ImageDeletionDeps;
  readonly #active = new Map<string, Promise<void>>();
  constructor(deps: ImageDeletionDeps) {
    this.#deps = deps;
  }

  /** Answers when the node has let go of it. Its entry must be in `deleting`. */
  finish(image: Pick<Image, "id" | "nodeId">): Promise<void> {
    const active = this.#active.get(image.id);
    if (active) return active;
    const work = this.#finish(image).finally(() => this.#active.delete(image.id));
    this.#active.set(image.id, work);
    return work;
  }

  /** Marks it as of no use, and has it deleted behind the caller's back. */
  async drop(image: Pick<Image, "id" | "nodeId">): Promise<void> {
    await this.#deps.images.drop(image.id, this.#deps.clock.now());
    this.finishInBackground(image);
  }

  finishInBackground(image: Pick<Image, "id" | "nodeId">): void {
    this.finish(image).catch((error: unknown) => {
      this.#deps.logger.warn({ err: error, image_id: image.id, node_id: image.nodeId }, "deleting an image failed and will be tried again");
    });
  }

  /** Takes up what is left to delete. */
  async retry(): Promise<void> {
    const left = [...(await this.#deps.images.listUnsettled("deleting", LIMIT))];
    const workers = Array.from({ length: Math.min(AT_ONCE, left.length) }, async () => {
      for (let image = left.shift(); image; image = left.shift()) {
        const facts = { image_id: image.id, node_id: image.nodeId };
        await this.finish(image).catch((error: unknown) => this.#deps.logger.warn({ err: error, ...facts }, "deleting an image failed"));
      }
    });
    await Promise.all(workers);
  }

  /** Waits for what is under way. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#active.values());
  }

  async #finish(image: Pick<Image, "id" | "nodeId">): Promise<void> {
    const node = findNode(this.#deps.nodes, image.nodeId);
    await node.client.deleteImage({ imageId: image.id }, { timeoutMs: this.#deps.timeoutMs });
    await this.#deps.images.forget(image.id);
  }
}
