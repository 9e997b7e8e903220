/** Counts the sandboxes that this process started, by team, until they are taken to be stored. */
export class StartCounts {
  #counts = new Map<string, number>();

  add(teamId: string, count = 1): void {
    this.#counts.set(teamId, (this.#counts.get(teamId) ?? 0) + count);
  }

  take(): ReadonlyMap<string, number> {
    const taken = this.#counts;
    this.#counts = new Map();
    return taken;
  }
}
