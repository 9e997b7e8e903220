import { LISTED_AS, type Sandbox } from "@skerry/store";

/** A sandbox that callers can see: it has started once, so `startedAt` and `endAt` are set. */
export type ShownSandbox = Sandbox & { readonly startedAt: number; readonly endAt: number };

export function asShown(sandbox: Sandbox): ShownSandbox {
  return sandbox as ShownSandbox;
}

/** The state that callers see: those that an operation passes through count as running or paused. */
export function shownState(sandbox: Sandbox): "running" | "paused" {
  return LISTED_AS[sandbox.state] ?? "running";
}
