import type { Logger } from "@skerry/base";
import { type Dialect, PostgresDialect } from "kysely";
import pg from "pg";
import { connections } from "../metrics.ts";

/** PostgreSQL returns int8 as text. The values here are times and counts, far below 2^53. */
const INT8_OID = 20;

export function createPostgresDialect(url: string, logger: Logger | undefined): Dialect {
  const pool = new pg.Pool({
    connectionString: url,
    max: 16,
    connectionTimeoutMillis: 10_000,
    statement_timeout: 30_000,
    application_name: "skerry",
    types: {
      getTypeParser: ((oid: number, format?: "text" | "binary") =>
        oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
    },
  });
  // A connection that the server closes must not end the process. The pool handles errors of idle connections only. A connection that is in
  // use, between two queries, would throw an uncaught error. Its next query fails with the reason.
  const complain = (error: Error) => logger?.warn({ err: error }, "a database connection failed");
  pool.on("error", complain);
  pool.on("connect", (client) => client.on("error", () => {}));
  connections.observe(() => {
    if (pool.ended) return undefined;
    const { totalCount, idleCount, waitingCount } = pool;
    const counts = { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
    return Object.entries(counts).map(([state, value]) => ({ value, labels: { state } }));
  });
  return new PostgresDialect({ pool });
}
