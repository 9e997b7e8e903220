import { type Kysely, sql } from "kysely";
import { appendFromSource, appendLog, type LogBounds, type LogOwner, measure, SANDBOX_LOG_BOUNDS } from "./append-log.ts";
import { type BuildLogLevel, LOG_LEVELS } from "./build-logs.ts";
import type { DialectName } from "./dialect/json-contains.ts";
import type { LogLine } from "./log-line.ts";
import type { Database } from "./tables.ts";

export interface LogWindow {
  /** Begins at this time: the lines from then on, or the lines up to then. */
  readonly cursor: number;
  /** `backward`: the newest line first. */
  readonly direction: "forward" | "backward";
  readonly minLevel: BuildLogLevel;
  /** Only lines whose message contains this. */
  readonly search?: string;
  readonly limit: number;
}

export interface LogRetention {
  /** Lines before this time are deleted. */
  readonly before: number;
  /** Characters of all logs of a team. */
  readonly maxTeamCharacters: number;
}

/** Logs that are deleted in one transaction. */
const LOGS_AT_ONCE = 200;

/** Logs of sandboxes. Each change of a sandbox's state appends its line in its own transaction; see `sandbox-transition.ts`. */
export class SandboxLogRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  async append(owner: LogOwner, lines: readonly LogLine[], bounds: LogBounds = SANDBOX_LOG_BOUNDS): Promise<void> {
    await this.#db.transaction().execute((tx) => appendLog(tx, owner, lines, bounds));
  }

  /** Appends those lines of a source that are not stored yet, whichever process delivers them. Those of a sandbox without a row are dropped. */
  async appendDelivered(
    sandboxId: string,
    delivered: { readonly source: string; readonly lines: readonly (LogLine & { readonly number: number })[] },
  ): Promise<void> {
    await this.#db.transaction().execute(async (tx) => {
      const sandbox = await tx.selectFrom("sandboxes").where("id", "=", sandboxId).select("team_id").executeTakeFirst();
      if (sandbox) await appendFromSource(tx, { sandboxId, teamId: sandbox.team_id }, delivered);
    });
  }

  /** Nothing for the log of another team's sandbox. */
  async read({ sandboxId, teamId }: LogOwner, window: LogWindow): Promise<readonly LogLine[]> {
    const isForward = window.direction === "forward";
    const { search } = window;
    let query = this.#db
      .selectFrom("log_lines")
      .innerJoin("sandbox_logs", "sandbox_logs.sandbox_id", "log_lines.sandbox_id")
      .where("log_lines.sandbox_id", "=", sandboxId)
      .where("sandbox_logs.team_id", "=", teamId)
      .where("level", ">=", LOG_LEVELS.indexOf(window.minLevel))
      .where("at", isForward ? ">=" : "<=", window.cursor);
    if (search !== undefined && search !== "") {
      const position = sql.raw(this.#dialect === "postgres" ? "strpos" : "instr");
      query = query.where(sql<boolean>`${position}(${sql.ref("message")}, ${search}) > 0`);
    }
    const rows = await query
      .orderBy("at", isForward ? "asc" : "desc")
      .limit(window.limit)
      .selectAll("log_lines")
      .execute();
    return rows.map((row) => ({
      at: row.at,
      level: LOG_LEVELS[row.level] ?? "info",
      logger: row.logger,
      message: row.message,
      fields: JSON.parse(row.fields) as Record<string, string>,
      isGuest: row.is_guest === 1,
    }));
  }

  /** Deletes what is too old, and the longest silent logs of teams that have too much. */
  async forget({ before, maxTeamCharacters }: LogRetention): Promise<void> {
    for (let count = LOGS_AT_ONCE; count === LOGS_AT_ONCE; ) {
      count = await this.#forgetLogs((query) => query.where("last_at", "<", before));
    }
    await this.#forgetLines(before);
    for (;;) {
      const tooMuch = await this.#db
        .selectFrom("sandbox_logs")
        .groupBy("team_id")
        .having((eb) => eb(eb.fn.sum("characters"), ">", maxTeamCharacters))
        .select("team_id")
        .limit(1)
        .executeTakeFirst();
      if (!tooMuch) return;
      await this.#forgetLogs((query) => query.where("team_id", "=", tooMuch.team_id), 10);
    }
  }

  async #forgetLogs(which: (query: ReturnType<typeof idsOf>) => ReturnType<typeof idsOf>, limit = LOGS_AT_ONCE): Promise<number> {
    const rows = await which(idsOf(this.#db)).orderBy("last_at").limit(limit).execute();
    const ids = rows.map(({ sandbox_id }) => sandbox_id);
    if (ids.length > 0) await this.#db.deleteFrom("sandbox_logs").where("sandbox_id", "in", ids).execute();
    return ids.length;
  }

  /** Old lines of logs that have younger ones. */
  async #forgetLines(before: number): Promise<void> {
    for (;;) {
      const aging = await idsOf(this.#db).where("first_at", "<", before).limit(1).executeTakeFirst();
      if (!aging) return;
      const { sandbox_id: id } = aging;
      await this.#db.transaction().execute(async (tx) => {
        // Locks the log, because another process may be appending to it.
        await tx.updateTable("sandbox_logs").set({ first_at: before }).where("sandbox_id", "=", id).execute();
        await tx.deleteFrom("log_lines").where("sandbox_id", "=", id).where("at", "<", before).execute();
        await tx
          .updateTable("sandbox_logs")
          .set(await measure(tx, id))
          .where("sandbox_id", "=", id)
          .execute();
      });
    }
  }
}

function idsOf(db: Kysely<Database>) {
  return db.selectFrom("sandbox_logs").select("sandbox_id");
}
