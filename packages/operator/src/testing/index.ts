// What the test runner's own files (tests/run) and the testkit share with `./skerry test`.

export { type FileResult, type LeftOut, type TestPlan, TestRun } from "./test-run.ts";
