// Why sandboxes ended that nobody asked to end. It is told for a while after they are gone: being given back takes a fraction of
// a second, and who keeps account of them looks every few seconds only.

export type UnaskedEnd = "exited" | "memory";

const KEPT_MS = 10 * 60_000;
/** What guests can do as often as they like takes no more room than this. */
const MAX_KEPT = 10_000;

export class UnaskedEnds {
  /** Oldest first. */
  readonly #ends = new Map<string, { readonly reason: UnaskedEnd; readonly at: number }>();

  /** Of several reasons the first counts. Containers in the pool are nobody's sandbox: "" is not kept. */
  add(sandboxId: string, reason: UnaskedEnd, now = performance.now()): void {
    for (const [id, { at }] of this.#ends) {
      if (now - at < KEPT_MS && this.#ends.size < MAX_KEPT) break;
      this.#ends.delete(id);
    }
    if (sandboxId !== "" && !this.#ends.has(sandboxId)) this.#ends.set(sandboxId, { reason, at: now });
  }

  /** It runs again. */
  delete(sandboxId: string): void {
    this.#ends.delete(sandboxId);
  }

  list(now = performance.now()): { sandboxId: string; reason: UnaskedEnd }[] {
    return [...this.#ends].filter(([, { at }]) => now - at < KEPT_MS).map(([sandboxId, { reason }]) => ({ sandboxId, reason }));
  }
}
