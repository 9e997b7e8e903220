import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { ApiHarness, type HarnessOptions, startDatabases, type TestDatabases } from "./api-harness.ts";

/** Runs a suite over SQLite and over PostgreSQL; each test gets a new API over an empty database. */
export function describeOnEachDatabase(name: string, suite: (api: () => ApiHarness) => void, options: HarnessOptions = {}): void {
  describe.each(["sqlite", "postgres"] as const)(`${name} (%s)`, (kind) => {
    let databases: TestDatabases;
    let harness: ApiHarness;
    beforeAll(async () => {
      databases = await startDatabases();
    });
    afterAll(async () => await databases[Symbol.asyncDispose]());
    beforeEach(async () => {
      harness = await ApiHarness.start(await databases.create(kind), options);
    });
    afterEach(async () => await harness[Symbol.asyncDispose]());
    suite(() => harness);
  });
}
