export type { CleanupCounts } from "./cleanup-report.ts";
export type { OperatorContext } from "./context.ts";
export { runOperator } from "./program.ts";
