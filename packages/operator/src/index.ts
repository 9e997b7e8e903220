export type { CleanupCounts, OperatorContext } from "./context.ts";
export { runOperator } from "./program.ts";
export { readShipped, type ShippedTemplate, shippedNames } from "./templates/shipped.ts";
