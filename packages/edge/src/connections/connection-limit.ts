/** More cost too much memory, whatever the limit of open files says. */
const MOST = 32_768;

/**
 * Client connections that fit into a process's limit of open files. Each may hold a stream to a sandbox besides its own
 * socket; a fifth of the descriptors is left for everything else.
 */
export function connectionLimit(openFiles: number): number {
  return Math.max(1, Math.min(MOST, Math.floor((openFiles * 0.8) / 2)));
}
