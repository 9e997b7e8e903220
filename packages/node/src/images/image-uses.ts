/** Operations that read an image's memory, or use its areas before a record refers to them. An image is deleted only after they end. */
export class ImageUses {
  readonly #uses = new Map<string, Set<Promise<unknown>>>();

  /** Counts `work` as a use of the image until it settles. Returns the same promise. */
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

  /** Resolves when nothing uses the image any more, including uses that begin while waiting. */
  async settled(imageId: string): Promise<void> {
    for (let uses = this.#uses.get(imageId); uses; uses = this.#uses.get(imageId)) await Promise.allSettled(uses);
  }
}
