import type { Kysely } from "kysely";
import type { Database } from "./tables.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type BuildLogLevel = (typeof LOG_LEVELS)[number];

export interface BuildLogLine {
  readonly at: number;
  readonly level: BuildLogLevel;
  /** "" when the line belongs to no step. */
  readonly step: string;
  readonly message: string;
}

export interface BuildLogWindow {
  /** Begins at this time: the lines from then on, or the lines up to then. */
  readonly cursor: number | undefined;
  /** `backward`: the newest line first. */
  readonly direction: "forward" | "backward";
  readonly minLevel: BuildLogLevel;
  readonly limit: number;
}

/** Lines of one statement. SQLite takes 32,766 parameters. */
const LINES_AT_ONCE = 1000;

/** The logs of builds. Lines are written by `BuildRepository`, together with the progress that they describe. */
export class BuildLogRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** In the order of the log. `offset` counts the lines of at least `minLevel`. */
  async page(buildId: string, page: { minLevel: BuildLogLevel; offset: number; limit: number }): Promise<readonly BuildLogLine[]> {
    const rows = await this.#db
      .selectFrom("build_logs")
      .where("build_id", "=", buildId)
      .where("level", ">=", LOG_LEVELS.indexOf(page.minLevel))
      .orderBy("number")
      .offset(page.offset)
      .limit(page.limit)
      .select(["at", "level", "step", "message"])
      .execute();
    return rows.map(lineFrom);
  }

  async window(buildId: string, { cursor, direction, minLevel, limit }: BuildLogWindow): Promise<readonly BuildLogLine[]> {
    const isForward = direction === "forward";
    let query = this.#db.selectFrom("build_logs").where("build_id", "=", buildId).where("level", ">=", LOG_LEVELS.indexOf(minLevel));
    if (cursor !== undefined) query = query.where("at", isForward ? ">=" : "<=", cursor);
    const rows = await query
      .orderBy("number", isForward ? "asc" : "desc")
      .limit(limit)
      .select(["at", "level", "step", "message"])
      .execute();
    return rows.map(lineFrom);
  }

  /** Deletes the logs of builds that ended before a time. */
  async forget(before: number): Promise<void> {
    await this.#db
      .deleteFrom("build_logs")
      .where("build_id", "in", (eb) => eb.selectFrom("builds").where("finished_at", "<", before).select("id"))
      .execute();
  }

  /** The size of a log: lines, and characters of their messages. */
  async size(buildId: string): Promise<{ readonly lines: number; readonly characters: number }> {
    const row = await this.#db
      .selectFrom("build_logs")
      .where("build_id", "=", buildId)
      .select((eb) => [
        eb.fn.countAll<number>().as("lines"),
        eb.fn.coalesce(eb.fn.sum<number | string>(eb.fn<number>("length", ["message"])), eb.val(0)).as("characters"),
      ])
      .executeTakeFirstOrThrow();
    return { lines: Number(row.lines), characters: Number(row.characters) };
  }
}

/**
 * Appends lines. Their times never go back, whichever clock they were taken from. Precondition: the transaction has changed the build's row, so
 * that no other one appends at the same time.
 */
export async function appendLines(tx: Kysely<Database>, buildId: string, lines: readonly BuildLogLine[]): Promise<void> {
  if (lines.length === 0) return;
  const last = await tx
    .selectFrom("build_logs")
    .where("build_id", "=", buildId)
    .orderBy("number", "desc")
    .limit(1)
    .select(["number", "at"])
    .executeTakeFirst();
  let number = last?.number ?? -1;
  let at = last?.at ?? 0;
  const rows = lines.map((line) => {
    number += 1;
    at = Math.max(at, line.at);
    return { build_id: buildId, number, at, level: LOG_LEVELS.indexOf(line.level), step: line.step, message: line.message };
  });
  for (let from = 0; from < rows.length; from += LINES_AT_ONCE) {
    await tx
      .insertInto("build_logs")
      .values(rows.slice(from, from + LINES_AT_ONCE))
      .execute();
  }
}

function lineFrom(row: { at: number; level: number; step: string; message: string }): BuildLogLine {
  return { at: row.at, level: LOG_LEVELS[row.level] ?? "info", step: row.step, message: row.message };
}
