// The hub that is in use, for those who only have to wait for it. None is there while nobody watches.

import type { WatchHub } from "./watch-hub.ts";

let current: WatchHub | undefined;

export function currentHub(): WatchHub | undefined {
  return current?.isEmpty ? undefined : current;
}

export function setCurrentHub(hub: WatchHub): void {
  current = hub;
}
