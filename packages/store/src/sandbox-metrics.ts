import { type Kysely, sql } from "kysely";
import { dueSummaries, METRIC_STEPS } from "./metric-steps.ts";
import type { Database, SandboxMetricTable } from "./tables.ts";

export interface SandboxMetric {
  readonly sandboxId: string;
  readonly at: number;
  readonly cpuCount: number;
  /** Of all CPUs together, 0 to 100. */
  readonly cpuPercent: number;
  readonly memoryUsedBytes: number;
  readonly memoryTotalBytes: number;
  readonly memoryCacheBytes: number;
  readonly diskUsedBytes: number;
  readonly diskTotalBytes: number;
}

/** Rows of one statement. Each has ten parameters, and SQLite takes 32,766. */
const ROWS_AT_ONCE = 1_000;

/** What sandboxes used. Repeated writes of the same measurement, also by several processes, leave one row. */
export class SandboxMetricRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async add(metrics: readonly SandboxMetric[], stepMs: number): Promise<void> {
    for (let from = 0; from < metrics.length; from += ROWS_AT_ONCE) {
      const rows = metrics.slice(from, from + ROWS_AT_ONCE).map((metric) => rowOf(metric, stepMs));
      await this.#db
        .insertInto("sandbox_metrics")
        .values(rows)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    }
  }

  /** Rows from `start` to `end`, both included, the oldest first. */
  async range(sandboxId: string, { start, end }: { readonly start: number; readonly end: number }): Promise<readonly SandboxMetric[]> {
    const rows = await this.#db
      .selectFrom("sandbox_metrics")
      .where("sandbox_id", "=", sandboxId)
      .where("at", ">=", start)
      .where("at", "<=", end)
      .orderBy("at")
      .selectAll()
      .execute();
    return rows.map(metricFrom);
  }

  /** The newest one of each of these sandboxes that belongs to the team and has any. */
  async newest(teamId: string, sandboxIds: readonly string[]): Promise<readonly SandboxMetric[]> {
    if (sandboxIds.length === 0) return [];
    const rows = await this.#db
      .selectFrom("sandboxes")
      .innerJoin("sandbox_metrics", (join) =>
        join.onRef("sandbox_metrics.sandbox_id", "=", "sandboxes.id").on("sandbox_metrics.at", "=", (eb) =>
          eb
            .selectFrom("sandbox_metrics as other")
            .whereRef("other.sandbox_id", "=", "sandboxes.id")
            .select((inner) => inner.fn.max("other.at").as("at")),
        ),
      )
      .where("sandboxes.id", "in", sandboxIds)
      .where("sandboxes.team_id", "=", teamId)
      .selectAll("sandbox_metrics")
      .execute();
    return rows.map(metricFrom);
  }

  /** The time of the newest measurement of all; undefined when there is none. */
  async newestAt(stepMs: number): Promise<number | undefined> {
    const query = this.#db.selectFrom("sandbox_metrics").where("step_ms", "=", stepMs).orderBy("at", "desc").limit(1);
    return (await query.select("at").executeTakeFirst())?.at;
  }

  /** Summarises old measurements, and deletes those before `forgetBefore`. */
  async summarise(now: number, forgetBefore: number): Promise<void> {
    for (const { fromStepMs, toStepMs, before } of dueSummaries(now)) {
      await this.#db.transaction().execute(async (tx) => {
        await sql`
          insert into sandbox_metrics (sandbox_id, at, step_ms, cpu_count, cpu_used, memory_used, memory_total, memory_cache, disk_used, disk_total)
          select sandbox_id, (at / ${sql.lit(toStepMs)}) * ${sql.lit(toStepMs)}, ${sql.lit(toStepMs)}, max(cpu_count),
            cast(avg(cpu_used) as integer), cast(avg(memory_used) as bigint), max(memory_total), cast(avg(memory_cache) as bigint),
            cast(avg(disk_used) as bigint), max(disk_total)
          from sandbox_metrics where step_ms = ${sql.lit(fromStepMs)} and at < ${before}
          group by sandbox_id, (at / ${sql.lit(toStepMs)}) * ${sql.lit(toStepMs)}
          on conflict do nothing`.execute(tx);
        await tx.deleteFrom("sandbox_metrics").where("step_ms", "=", fromStepMs).where("at", "<", before).execute();
      });
    }
    for (const { stepMs } of METRIC_STEPS) {
      await this.#db.deleteFrom("sandbox_metrics").where("step_ms", "=", stepMs).where("at", "<", forgetBefore).execute();
    }
  }
}

function rowOf(metric: SandboxMetric, stepMs: number): SandboxMetricTable {
  return {
    sandbox_id: metric.sandboxId,
    at: metric.at,
    step_ms: stepMs,
    cpu_count: metric.cpuCount,
    cpu_used: Math.round(metric.cpuPercent * 100),
    memory_used: metric.memoryUsedBytes,
    memory_total: metric.memoryTotalBytes,
    memory_cache: metric.memoryCacheBytes,
    disk_used: metric.diskUsedBytes,
    disk_total: metric.diskTotalBytes,
  };
}

function metricFrom(row: SandboxMetricTable): SandboxMetric {
  return {
    sandboxId: row.sandbox_id,
    at: row.at,
    cpuCount: row.cpu_count,
    cpuPercent: row.cpu_used / 100,
    memoryUsedBytes: row.memory_used,
    memoryTotalBytes: row.memory_total,
    memoryCacheBytes: row.memory_cache,
    diskUsedBytes: row.disk_used,
    diskTotalBytes: row.disk_total,
  };
}
