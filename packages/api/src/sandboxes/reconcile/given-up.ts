import type { EndReason } from "@skerry/store";

const MOST = 10_000;

/**
 * Sandboxes whose creation this process has given up, and has had ended on their nodes, while it could not write that down: when they are
 * found to be gone later, this is why.
 */
export class GivenUp {
  /** Oldest first. */
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
