// Has nodes let go of images whose entries are in `deleting`.
// Failure policy: what a node does not let go of stays in `deleting`, and is tried again at every round.

import type { Clock, Logger } from "@skerry/base";
import type { Image, ImageRepository } from "@skerry/store";
import { findNode } from "../nodes/find-node.ts";
import { NodeTurns } from "../nodes/node-turns.ts";
import type { NodeDirectory } from "./ports.ts";

const AT_ONCE = 8;
const SCAN_LIMIT = 10_000;

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
  readonly #background = new Map<string, Promise<void>>();
  readonly #turns = new NodeTurns(AT_ONCE);
  #stopped = false;
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

  /** Where nobody waits: a failure is logged, and only so many run at once on a node. */
  finishInBackground(image: Pick<Image, "id" | "nodeId">): void {
    const { id, nodeId } = image;
    if (this.#active.has(id) || this.#background.has(id)) return;
    const work = this.#turns
      .run(nodeId, async () => {
        if (!this.#stopped) await this.finish(image);
      })
      .catch((error: unknown) => {
        this.#deps.logger.warn({ err: error, image_id: id, node_id: nodeId }, "deleting an image failed and will be tried again");
      })
      .finally(() => this.#background.delete(id));
    this.#background.set(id, work);
  }

  /** Takes up what is left to delete, in the background. */
  async retry(): Promise<void> {
    for (const image of await this.#deps.images.listUnsettled("deleting", SCAN_LIMIT)) this.finishInBackground(image);
  }

  /** Answers when everything is over that is under way or waits for its turn, also what failed. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#background.values(), ...this.#active.values()]);
  }

  /** Waits for what is under way, and begins no more of what waits. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled(this.#active.values());
  }

  async #finish(image: Pick<Image, "id" | "nodeId">): Promise<void> {
    const node = findNode(this.#deps.nodes, image.nodeId);
    await node.client.deleteImage({ imageId: image.id }, { timeoutMs: this.#deps.timeoutMs });
    await this.#deps.images.forget(image.id);
  }
}
