import type { EndReason } from "@skerry/store";

const MOST = 10_000;

/**
 * Creates that this process gave up and killed on their nodes while the database could not be reached. The reconciliation later finds that
 * these sandboxes are gone, and gets the reason here.
 */
export class GivenUp {
  /** By sandbox id, in the order of insertion: the oldest first. */
  readonly #reasons = new Map<string, EndReason>();

  add(sandboxId: string, reason: EndReason): void {
    const [oldest] = this.#reasons.keys();
    if (this.#reasons.size >= MOST && oldest !== undefined) this.#reasons.delete(oldest);
    this.#reasons.set(sandboxId, reason);
  }

  reasonOf(sandboxId: string): EndReason | undefined {
    return this.#reasons.get(sandboxId);
  }
}
