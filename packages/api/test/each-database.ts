import { databasesFor } from "@skerry/testkit/depth";
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { ApiHarness, type HarnessOptions, startDatabases, type TestDatabases } from "./api-harness.ts";

export interface EachDatabaseOptions extends HarnessOptions {
  /** The databases of this suite in a sample of the tests. The store's own tests always use both. */
  readonly inSample: "sqlite" | "postgres" | "both";
}

/** Runs a suite on SQLite and on PostgreSQL. Each test has a new API with a database of its own. */
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
