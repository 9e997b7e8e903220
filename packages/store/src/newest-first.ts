import type { ExpressionBuilder } from "kysely";
import type { Database } from "./tables.ts";

/** Where a page of a list begins that is sorted from new to old. */
export interface CreatedAfter {
  readonly createdAt: number;
  readonly id: string;
}

/** True for rows that come after `after` in the order of `created_at desc, id`. */
export function isAfter<T extends "teams" | "users">(eb: ExpressionBuilder<Database, T>, after: CreatedAfter) {
  const rows = eb as unknown as ExpressionBuilder<Database, "users">;
  return rows.or([
    rows("created_at", "<", after.createdAt),
    rows.and([rows("created_at", "=", after.createdAt), rows("id", ">", after.id)]),
  ]);
}
