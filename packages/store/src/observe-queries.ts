// Times every statement for the metrics, also those that begin and end transactions. Kysely's own log does not see what a driver sends
// through another one.

import type { CompiledQuery, DatabaseConnection, Dialect, Driver } from "kysely";
import { isDatabaseAway } from "./database-away.ts";
import { queryDuration, queryErrors } from "./metrics.ts";

const STATEMENTS: Readonly<Record<string, string>> = {
  SelectQueryNode: "select",
  InsertQueryNode: "insert",
  UpdateQueryNode: "update",
  DeleteQueryNode: "delete",
};
const TRANSACTION = /^(begin|commit|rollback)/;

export function observedDialect(dialect: Dialect): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => observeConnections(dialect.createDriver()),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

/** Drivers hand out the same objects again and again, and send the statements of transactions through them. */
function observeConnections(driver: Driver): Driver {
  const observed = new WeakSet<DatabaseConnection>();
  const acquire = driver.acquireConnection.bind(driver);
  driver.acquireConnection = async (...options) => {
    const connection = await acquire(...options);
    if (!observed.has(connection)) {
      observed.add(connection);
      observe(connection);
    }
    return connection;
  };
  return driver;
}

function observe(connection: DatabaseConnection): void {
  const execute = connection.executeQuery.bind(connection);
  connection.executeQuery = async <R>(query: CompiledQuery, ...options: Rest<DatabaseConnection["executeQuery"]>) => {
    const startedAt = performance.now();
    try {
      return await execute<R>(query, ...options);
    } catch (error) {
      queryErrors.inc({ reason: isDatabaseAway(error) ? "away" : "other" });
      throw error;
    } finally {
      const statement = STATEMENTS[query.query.kind] ?? TRANSACTION.exec(query.sql)?.[1] ?? "other";
      queryDuration.observe({ statement }, (performance.now() - startedAt) / 1000);
    }
  };
}

type Rest<F extends (...all: never[]) => unknown> = Parameters<F> extends [unknown, ...infer Others] ? Others : never;
