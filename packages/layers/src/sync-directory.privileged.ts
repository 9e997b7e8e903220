import { closeSync, fsyncSync, openSync } from "node:fs";

/** When it returns, the names in a directory survive a power loss. */
export function syncDirectory(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
