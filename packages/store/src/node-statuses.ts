import type { Kysely } from "kysely";
import type { Database } from "./tables.ts";

/** What the operator set a node to. A node without an entry is `ready`. Only a `ready` node gets new sandboxes and builds. */
export type SetNodeStatus = "ready" | "draining" | "standby";

export interface NodeStatusEntry {
  readonly status: SetNodeStatus;
  readonly changedAt: number;
}

/** What the operator set the nodes to. */
export class NodeStatusRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async list(): Promise<ReadonlyMap<string, NodeStatusEntry>> {
    const rows = await this.#db.selectFrom("node_statuses").selectAll().execute();
    return new Map(rows.map((row) => [row.node_id, { status: row.status as SetNodeStatus, changedAt: row.changed_at }]));
  }

  /** Keeps the time of the former change if the status is the same. */
  async set(nodeId: string, status: SetNodeStatus, now: number): Promise<void> {
    await this.#db
      .insertInto("node_statuses")
      .values({ node_id: nodeId, status, changed_at: now })
      .onConflict((conflict) =>
        conflict.column("node_id").doUpdateSet({ status, changed_at: now }).where("node_statuses.status", "!=", status),
      )
      .execute();
  }
}
