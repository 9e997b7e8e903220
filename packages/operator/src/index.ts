export type { CleanupCounts, OperatorContext } from "./context.ts";
export { runOperator } from "./program.ts";
