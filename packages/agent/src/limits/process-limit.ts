/** How many more processes and threads may be started when guests have used up theirs: somebody has to start the `kill`. */
export const SPARE_PROCESSES = 64;

/**
 * Keeps guests from using up the processes of this sandbox, so that the agent goes on and can start the program that ends the
 * others. A guest that is root may undo it; then its own sandbox fails, at the host's limit.
 */
export interface ProcessLimit {
  /** How many processes and threads guests may have together. */
  setMost(most: number): void;
  /**
   * What `start` makes, and everything that this makes in turn, is counted. When `isRefused` says of its error that there was no
   * room, it is tried once more in the room that is kept for that.
   */
  within<T>(start: () => T, isRefused: (error: unknown) => boolean): T;
}
