import { type Kysely, sql } from "kysely";
import { dueSummaries, METRIC_STEPS } from "./metric-steps.ts";
import type { Database } from "./tables.ts";

export interface TeamMetric {
  readonly teamId: string;
  readonly at: number;
  readonly stepMs: number;
  /** The most sandboxes that ran at once. */
  readonly concurrent: number;
  /** Sandboxes that were started. */
  readonly starts: number;
}

/** How many sandboxes teams ran and started. A team that runs none has no rows. */
export class TeamMetricRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Adds what one process counted. All processes count the running sandboxes; each of them counts its own starts. */
  async add(metrics: readonly TeamMetric[]): Promise<void> {
    if (metrics.length === 0) return;
    const rows = metrics.map(({ teamId, at, stepMs, concurrent, starts }) => ({
      team_id: teamId,
      at,
      step_ms: stepMs,
      concurrent,
      starts,
    }));
    await this.#db
      .insertInto("team_metrics")
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(["team_id", "at", "step_ms"]).doUpdateSet({
          concurrent: sql`case when excluded.concurrent > team_metrics.concurrent then excluded.concurrent else team_metrics.concurrent end`,
          starts: sql`team_metrics.starts + excluded.starts`,
        }),
      )
      .execute();
  }

  /** Rows from `start` to `end`, both included, the oldest first. */
  async range(teamId: string, { start, end }: { readonly start: number; readonly end: number }): Promise<readonly TeamMetric[]> {
    const rows = await this.#db
      .selectFrom("team_metrics")
      .where("team_id", "=", teamId)
      .where("at", ">=", start)
      .where("at", "<=", end)
      .orderBy("at")
      .selectAll()
      .execute();
    return rows.map((row) => ({ teamId: row.team_id, at: row.at, stepMs: row.step_ms, concurrent: row.concurrent, starts: row.starts }));
  }

  /** Summarises old rows, and deletes those before `forgetBefore`. */
  async summarise(now: number, forgetBefore: number): Promise<void> {
    for (const { fromStepMs, toStepMs, before } of dueSummaries(now)) {
      await this.#db.transaction().execute(async (tx) => {
        await sql`
          insert into team_metrics (team_id, at, step_ms, concurrent, starts)
          select team_id, (at / ${sql.lit(toStepMs)}) * ${sql.lit(toStepMs)}, ${sql.lit(toStepMs)}, max(concurrent), sum(starts)
          from team_metrics where step_ms = ${sql.lit(fromStepMs)} and at < ${before}
          group by team_id, (at / ${sql.lit(toStepMs)}) * ${sql.lit(toStepMs)}
          on conflict do nothing`.execute(tx);
        await tx.deleteFrom("team_metrics").where("step_ms", "=", fromStepMs).where("at", "<", before).execute();
      });
    }
    for (const { stepMs } of METRIC_STEPS) {
      await this.#db.deleteFrom("team_metrics").where("step_ms", "=", stepMs).where("at", "<", forgetBefore).execute();
    }
  }
}
