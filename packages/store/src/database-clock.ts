// The time that counts for what is in the database: the database's own. Several control processes run on machines whose clocks differ, and
// what one of them writes down another one acts on.

import { type Clock, type Logger, systemClock } from "@skerry/base";
import { type Kysely, sql } from "kysely";
import type { DialectName } from "./dialect/json-contains.ts";
import type { Database } from "./tables.ts";

/** A machine's clock that is further off than this is worth saying. */
const SKEW_MS = 2_000;
const SAY_EVERY_MS = 600_000;

export interface DatabaseClock extends Clock {
  /** Asks the database again: its clock and ours drift, and may be set. Does nothing where the database is a file of this machine. */
  measure(): Promise<void>;
}

export async function openDatabaseClock(
  db: Kysely<Database>,
  dialect: DialectName,
  options: { logger: Logger | undefined; machine: Clock | undefined },
): Promise<DatabaseClock> {
  const machine = options.machine ?? systemClock;
  if (dialect === "sqlite") return { now: () => machine.now(), measure: async () => {} };
  const clock = new PostgresClock(db, { machine, logger: options.logger });
  await clock.measure();
  return clock;
}

class PostgresClock implements DatabaseClock {
  readonly #db: Kysely<Database>;
  readonly #machine: Clock;
  readonly #logger: Logger | undefined;
  /** To be added to this process's monotonic clock, which nobody sets. */
  #offsetMs = 0;
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(db: Kysely<Database>, options: { machine: Clock; logger: Logger | undefined }) {
    this.#db = db;
    this.#machine = options.machine;
    this.#logger = options.logger;
  }

  now(): number {
    return Math.round(performance.now() + this.#offsetMs);
  }

  async measure(): Promise<void> {
    const askedAt = performance.now();
    const { rows } = await sql<{ ms: number }>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`.execute(this.#db);
    const answeredAt = performance.now();
    this.#offsetMs = (rows[0]?.ms ?? 0) - (askedAt + answeredAt) / 2;
    const skewMs = Math.round(this.#machine.now() - this.now());
    if (Math.abs(skewMs) < SKEW_MS || answeredAt - this.#saidAt < SAY_EVERY_MS) return;
    this.#saidAt = answeredAt;
    this.#logger?.warn(
      { skew_ms: skewMs },
      "the clock of this machine differs from the database's, which is the one that counts: set it right",
    );
  }
}
