import type { RunningPlatform } from "../platform.ts";

/** The services of the test runner's process for the processes that run test files, as HTTP with JSON. */
export interface RunServicesProtocol {
  readonly "/postgres/create": { request: { migrated: boolean }; response: { url: string } };
  readonly "/postgres/drop": { request: { url: string }; response: object };
  /** Answers with the platform for a team that is created for the caller. */
  readonly "/platform": { request: { runtime: "gvisor" | "runc" }; response: RunningPlatform };
}

declare module "vitest" {
  export interface ProvidedContext {
    /** URL of the services of this test run. */
    runServices: string;
  }
}
