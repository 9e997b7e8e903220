/** Upper bound on client connections because of their memory, whatever the limit on open files is. */
const MOST = 32_768;

/**
 * Returns how many client connections fit into a process's limit on open files. Each connection needs a descriptor for its
 * socket and one for its stream to a sandbox. A fifth of the descriptors is reserved for everything else.
 */
export function connectionLimit(openFiles: number): number {
  return Math.max(1, Math.min(MOST, Math.floor((openFiles * 0.8) / 2)));
}
