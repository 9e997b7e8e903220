import type { RunningPlatform } from "../platform.ts";

/** What the test runner's process does for the processes that run test files, over HTTP with JSON. */
export interface RunServicesProtocol {
  readonly "/postgres/create": { request: { migrated: boolean }; response: { url: string } };
  readonly "/postgres/drop": { request: { url: string }; response: object };
  /** Of a team that is made for the caller. */
  readonly "/platform": { request: { runtime: "gvisor" | "runc" }; response: RunningPlatform };
}

declare module "vitest" {
  export interface ProvidedContext {
    /** Where the run services of this run listen. */
    runServices: string;
  }
}
