// What the test runner's own files (tests/run) and the testkit share with `./skerry test`.

export type { TestDepth } from "./test-files.ts";
export { type FileResult, type LeftOut, type TestPlan, TestRun } from "./test-run.ts";
