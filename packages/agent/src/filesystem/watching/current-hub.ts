// The hub in use, for code that only has to wait for it. Undefined while nobody watches. Does not load the code of the hub.

import type { WatchHub } from "./watch-hub.ts";

let current: WatchHub | undefined;

export function currentHub(): WatchHub | undefined {
  return current?.isEmpty ? undefined : current;
}

export function setCurrentHub(hub: WatchHub): void {
  current = hub;
}
