/** Work that reads an image's memory or lies on its disk before any record says so. An image is not deleted before it is over. */
export class ImageUses {
  readonly #uses = new Map<string, Set<Promise<unknown>>>();

  /** Counts `work` as a use of the image until it ends, however it ends. Answers with the same promise. */
  during<Result>(imageId: string, work: Promise<Result>): Promise<Result> {
    const uses = this.#uses.get(imageId) ?? new Set();
    this.#uses.set(imageId, uses.add(work));
    const forget = () => {
      uses.delete(work);
      if (uses.size === 0 && this.#uses.get(imageId) === uses) this.#uses.delete(imageId);
    };
    work.then(forget, forget);
    return work;
  }

  /** Resolves when nothing uses the image any more, also what begins to use it meanwhile. */
  async settled(imageId: string): Promise<void> {
    for (let uses = this.#uses.get(imageId); uses; uses = this.#uses.get(imageId)) await Promise.allSettled(uses);
  }
}
