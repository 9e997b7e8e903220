// Remembers why sandboxes ended without a request. The reasons are kept for a while after the release: a release takes a fraction of a
// second, and the control plane asks every few seconds.

export type UnaskedEnd = "exited" | "memory";

const KEPT_MS = 10 * 60_000;
/** Maximum number of reasons. Guests can end their sandboxes as often as they like. */
const MAX_KEPT = 10_000;

export class UnaskedEnds {
  /** By sandbox id, the oldest first. */
  readonly #ends = new Map<string, { readonly reason: UnaskedEnd; readonly at: number }>();

  /** The first reason of a sandbox counts. Ready containers, with the id "", are ignored. */
  add(sandboxId: string, reason: UnaskedEnd, now = performance.now()): void {
    for (const [id, { at }] of this.#ends) {
      if (now - at < KEPT_MS && this.#ends.size < MAX_KEPT) break;
      this.#ends.delete(id);
    }
    if (sandboxId !== "" && !this.#ends.has(sandboxId)) this.#ends.set(sandboxId, { reason, at: now });
  }

  /** Forgets the reason, when the sandbox runs again. */
  delete(sandboxId: string): void {
    this.#ends.delete(sandboxId);
  }

  list(now = performance.now()): { sandboxId: string; reason: UnaskedEnd }[] {
    return [...this.#ends].filter(([, { at }]) => now - at < KEPT_MS).map(([sandboxId, { reason }]) => ({ sandboxId, reason }));
  }
}
