/** Processes and threads that can still be started when the guests have reached their limit, for example `kill`. */
export const SPARE_PROCESSES = 64;

/**
 * Keeps guests from using up the sandbox's processes, so that the agent keeps working and can start a program that kills others. A
 * guest with root rights can remove the limit. Then its own sandbox fails at the host's limit.
 */
export interface ProcessLimit {
  /** Limits the processes and threads of all guests together. */
  setMost(most: number): void;
  /**
   * Runs `start`. The processes that it creates, and their descendants, count towards the limit. When it fails and `isRefused`
   * returns true for the error, it runs once more with the spare processes.
   */
  within<T>(start: () => T, isRefused: (error: unknown) => boolean): T;
}
