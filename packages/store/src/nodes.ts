import { type Kysely, sql } from "kysely";
import { OCCUPYING_STATES } from "./sandbox.ts";
import type { Database } from "./tables.ts";

/** What the operator set a node to. A node without an entry is `ready`. Only a `ready` node gets new sandboxes and builds. */
export type SetNodeStatus = "ready" | "draining" | "standby";

export interface NodeStatusEntry {
  readonly status: SetNodeStatus;
  readonly changedAt: number;
}

/** The sandboxes of a node that are being started or run. */
export interface NodeLoad {
  readonly sandboxes: number;
  readonly starting: number;
  readonly cpuCount: number;
  readonly memoryMb: number;
}

/** What the operator set the nodes to, and what they run. */
export class NodeRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async statuses(): Promise<ReadonlyMap<string, NodeStatusEntry>> {
    const rows = await this.#db.selectFrom("node_statuses").selectAll().execute();
    return new Map(rows.map((row) => [row.node_id, { status: row.status as SetNodeStatus, changedAt: row.changed_at }]));
  }

  /** The ids of the nodes that get no new sandboxes and builds. */
  async closed(): Promise<ReadonlySet<string>> {
    const rows = await this.#db.selectFrom("node_statuses").where("status", "!=", "ready").select("node_id").execute();
    return new Set(rows.map((row) => row.node_id));
  }

  /** Keeps the time of the former change if the status is the same. */
  async setStatus(nodeId: string, status: SetNodeStatus, now: number): Promise<void> {
    await this.#db
      .insertInto("node_statuses")
      .values({ node_id: nodeId, status, changed_at: now })
      .onConflict((conflict) =>
        conflict.column("node_id").doUpdateSet({ status, changed_at: now }).where("node_statuses.status", "!=", status),
      )
      .execute();
  }

  /** By node. Nodes without sandboxes are missing. */
  async loads(): Promise<ReadonlyMap<string, NodeLoad>> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("state", "in", OCCUPYING_STATES)
      .groupBy("node_id")
      .select([
        "node_id",
        sql<number>`count(*)`.as("count"),
        sql<number>`sum(case when state in ('starting', 'resuming') then 1 else 0 end)`.as("starting"),
        sql<number>`sum(cpu_count)`.as("cpus"),
        sql<number>`sum(memory_mb)`.as("memory"),
      ])
      .execute();
    return new Map(
      rows.map((row) => {
        const starting = Number(row.starting);
        const sandboxes = Number(row.count) - starting;
        return [row.node_id, { sandboxes, starting, cpuCount: Number(row.cpus), memoryMb: Number(row.memory) }];
      }),
    );
  }

  /** The number of running sandboxes of each team that has any. */
  async runningByTeam(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("listed", "=", "running")
      .groupBy("team_id")
      .select(["team_id", sql<number>`count(*)`.as("count")])
      .execute();
    return new Map(rows.map((row) => [row.team_id, Number(row.count)]));
  }

  /** The ids and nodes of all sandboxes that are being started, run, or are about to be paused. */
  async listAllOccupying(): Promise<readonly { readonly id: string; readonly nodeId: string }[]> {
    const rows = await this.#db.selectFrom("sandboxes").where("state", "in", OCCUPYING_STATES).select(["id", "node_id"]).execute();
    return rows.map((row) => ({ id: row.id, nodeId: row.node_id }));
  }

  /** The ids of a team's sandboxes that are being started, run, or are about to be paused. */
  async listOccupying(teamId: string): Promise<readonly string[]> {
    const query = this.#db.selectFrom("sandboxes").where("team_id", "=", teamId).where("state", "in", OCCUPYING_STATES);
    return (await query.select("id").orderBy("id").execute()).map(({ id }) => id);
  }
}
