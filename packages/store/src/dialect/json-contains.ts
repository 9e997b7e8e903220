import { type Expression, type ReferenceExpression, type SqlBool, sql } from "kysely";
import type { Database } from "../tables.ts";

export type DialectName = "sqlite" | "postgres";

/** True for rows whose JSON text in `column` has every given pair, compared exactly. */
export function jsonContains(
  dialect: DialectName,
  column: ReferenceExpression<Database, "sandboxes">,
  pairs: Readonly<Record<string, string>>,
): Expression<SqlBool> {
  const ref = sql.ref(column as string);
  if (dialect === "postgres") return sql<SqlBool>`${ref}::jsonb @> ${JSON.stringify(pairs)}::jsonb`;
  const tests = Object.entries(pairs).map(
    ([key, value]) => sql<SqlBool>`exists (select 1 from json_each(${ref}) where "key" = ${key} and "atom" = ${value})`,
  );
  return sql<SqlBool>`(${sql.join(tests, sql` and `)})`;
}
