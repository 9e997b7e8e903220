// Selects, runs and evaluates tests, and removes what killed runs left. `./skerry test` prints the results.

export { ensureE2bCli } from "./e2b-cli.ts";
export { ensureInterpreterPython } from "./interpreter-python.ts";
export { ensurePythonSdk } from "./python-sdk.ts";
export { type CheckRun, runPlan, runStaticCheck, STATIC_CHECKS } from "./run-checks.ts";
export { describeScope, saveMeasured, selectTests } from "./selection.ts";
export { sweepStaleRuns } from "./stale-runs.ts";
export { sumTallies, type Tally } from "./tally.ts";
export { unmountBelow } from "./unmount-below.ts";
export { ensurePromtool, ensureTestRegistry } from "./unpacked-packages.ts";
