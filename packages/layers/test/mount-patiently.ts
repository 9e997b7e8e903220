import { errnoOf } from "@skerry/base";
import { type HardLinks, mountRootFilesystem, type RootMount } from "@skerry/layers";

const ATTEMPTS = 1_500;
const PAUSE_MS = 20;

/**
 * As a node does it: an overlay that was unmounted is there for a moment longer, where a process of anybody's that is just starting has a
 * copy of all mounts.
 */
export function mountPatiently(root: RootMount): HardLinks {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return mountRootFilesystem(root);
    } catch (error) {
      if (errnoOf(error) !== "EBUSY" || attempt === ATTEMPTS) throw error;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}
