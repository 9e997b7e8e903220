import { databasesFor } from "@skerry/testkit/depth";
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { ApiHarness, type HarnessOptions, startDatabases, type TestDatabases } from "./api-harness.ts";

export interface EachDatabaseOptions extends HarnessOptions {
  /** Where a sample of the tests runs the suite. What the store itself does is tested on both databases at any depth. */
  readonly inSample: "sqlite" | "postgres" | "both";
}

/** Runs a suite over SQLite and over PostgreSQL; each test gets a new API over a database of its own. */
export function describeOnEachDatabase(name: string, options: EachDatabaseOptions, suite: (api: () => ApiHarness) => void): void {
  const { inSample } = options;
  describe.each(inSample === "both" ? (["sqlite", "postgres"] as const) : databasesFor(name, inSample))(`${name} (%s)`, (kind) => {
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
