// The clock of everything that is stored in the database: the database's own. API processes run on hosts whose clocks differ, and act on
// times that other processes wrote.

import { type Clock, type Logger, systemClock } from "@skerry/base";
import { type Kysely, sql } from "kysely";
import type { DialectName } from "./dialect/json-contains.ts";
import type { Database } from "./tables.ts";

/** Difference between the host's clock and the database's clock from which a warning is logged. */
const SKEW_MS = 2_000;
const SAY_EVERY_MS = 600_000;

export interface DatabaseClock extends Clock {
  /** Measures the difference again: clocks drift, and may be set. Does nothing when the database is a file on this host. */
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
  /** Offset to add to the monotonic clock of this process. */
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
