// Every change of state is a compare-and-set on the state it starts from: of several processes that try, one wins,
// and the others read what became of it. Nothing here decides which change is allowed; callers do.

import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import { type DialectName, jsonContains } from "./dialect/json-contains.ts";
import {
  ENTRY_COLUMNS,
  type EndReason,
  entryFrom,
  type NewSandbox,
  type Sandbox,
  type SandboxEntry,
  type SandboxState,
  sandboxFrom,
  sandboxRow,
} from "./sandbox.ts";
import type { Database } from "./tables.ts";

export interface SandboxTransition {
  readonly from: SandboxState;
  readonly to: SandboxState;
  readonly now: number;
  readonly endReason?: EndReason;
}

export interface SandboxStart {
  readonly startedAt: number;
  readonly endAt: number;
  readonly runtime: string;
  readonly agentVersion: string;
}

export interface SandboxFilter {
  readonly teamId: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly templateId?: string;
  /** Inclusive. */
  readonly startedFrom?: number;
}

export interface SandboxPage {
  readonly order: "asc" | "desc";
  readonly limit: number;
  readonly after?: { readonly startedAt: number; readonly id: string };
}

export interface SandboxRoute {
  readonly nodeId: string;
  readonly nodeUrl: string;
}

type RunningQuery<O> = SelectQueryBuilder<Database, "sandboxes", O>;

/** Sandboxes, from the entry that is made before anything else of them to the one that says how they ended. */
export class SandboxRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Writes the entry in state `starting`. */
  async insert(sandbox: NewSandbox): Promise<void> {
    await this.#db.insertInto("sandboxes").values(sandboxRow(sandbox)).execute();
  }

  async find(id: string): Promise<Sandbox | undefined> {
    const row = await this.#db.selectFrom("sandboxes").where("id", "=", id).selectAll().executeTakeFirst();
    return row && sandboxFrom(row);
  }

  /** From `starting` to `running`, and counted for its template: one commit. Undefined when it was not starting any more. */
  async start(id: string, start: SandboxStart): Promise<Sandbox | undefined> {
    const { startedAt, endAt, runtime, agentVersion } = start;
    return await this.#db.transaction().execute(async (tx) => {
      const row = await tx
        .updateTable("sandboxes")
        .set({ state: "running", state_changed_at: startedAt, started_at: startedAt, end_at: endAt, runtime, agent_version: agentVersion })
        .where("id", "=", id)
        .where("state", "=", "starting")
        .returningAll()
        .executeTakeFirst();
      if (!row) return undefined;
      await tx
        .updateTable("templates")
        .set((eb) => ({ spawn_count: eb("spawn_count", "+", 1), last_spawned_at: startedAt }))
        .where("id", "=", row.template_id)
        .execute();
      return sandboxFrom(row);
    });
  }

  /** True when this call made the change. */
  async transition(id: string, change: SandboxTransition): Promise<boolean> {
    let update = this.#db
      .updateTable("sandboxes")
      .set({ state: change.to, state_changed_at: change.now })
      .where("id", "=", id)
      .where("state", "=", change.from);
    if (change.endReason !== undefined) update = update.set({ end_reason: change.endReason });
    if (change.to === "ended") update = update.set({ ended_at: change.now });
    return (await update.executeTakeFirst()).numUpdatedRows === 1n;
  }

  /** Sets when a sandbox that runs now ends. With `onlyLater` an end that is later already stays. True when it was changed. */
  async setEnd(id: string, end: { readonly endAt: number; readonly now: number; readonly onlyLater: boolean }): Promise<boolean> {
    let update = this.#db
      .updateTable("sandboxes")
      .set({ end_at: end.endAt })
      .where("id", "=", id)
      .where("state", "=", "running")
      .where("end_at", ">", end.now);
    if (end.onlyLater) update = update.where("end_at", "<", end.endAt);
    return (await update.executeTakeFirst()).numUpdatedRows === 1n;
  }

  async listRunning(filter: SandboxFilter, page: SandboxPage): Promise<readonly Sandbox[]> {
    const [byTime, byId] = page.order === "desc" ? (["desc", "asc"] as const) : (["asc", "desc"] as const);
    let query = this.#matching(filter).selectAll().orderBy("started_at", byTime).orderBy("id", byId).limit(page.limit);
    const after = page.after;
    if (after) {
      const [timeIsNext, idIsNext] = page.order === "desc" ? (["<", ">"] as const) : ([">", "<"] as const);
      query = query.where((eb) =>
        eb.or([
          eb("started_at", timeIsNext, after.startedAt),
          eb.and([eb("started_at", "=", after.startedAt), eb("id", idIsNext, after.id)]),
        ]),
      );
    }
    return (await query.execute()).map(sandboxFrom);
  }

  async countRunning(filter: SandboxFilter): Promise<number> {
    const row = await this.#matching(filter)
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    return row.count;
  }

  /**
   * Moves running sandboxes whose time is over to another state, the longest overdue first, in one statement:
   * when hundreds expire together none waits for the others. Returns those that this call moved.
   */
  async transitionExpired(change: {
    readonly to: SandboxState;
    readonly endReason: EndReason;
    readonly now: number;
    readonly limit: number;
  }): Promise<readonly SandboxEntry[]> {
    const rows = await this.#db
      .updateTable("sandboxes")
      .set({ state: change.to, state_changed_at: change.now, end_reason: change.endReason })
      .where("id", "in", (eb) =>
        eb
          .selectFrom("sandboxes")
          .where("state", "=", sql.lit("running"))
          .where("end_at", "<=", change.now)
          .orderBy("end_at")
          .limit(change.limit)
          .select("id"),
      )
      // Again, for the process that waited for another one's row lock.
      .where("state", "=", sql.lit("running"))
      .where("end_at", "<=", change.now)
      .returning(ENTRY_COLUMNS)
      .execute();
    return rows.map(entryFrom);
  }

  /** Sandboxes that have been in a passing state since `before` or longer, the oldest first. */
  async listUnsettled(state: "starting" | "killing", before: number, limit: number): Promise<readonly SandboxEntry[]> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("state", "=", sql.lit(state))
      .where("state_changed_at", "<=", before)
      .orderBy("state_changed_at")
      .limit(limit)
      .select(ENTRY_COLUMNS)
      .execute();
    return rows.map(entryFrom);
  }

  async listRunningOnNode(nodeId: string): Promise<readonly SandboxEntry[]> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("node_id", "=", nodeId)
      .where("state", "=", "running")
      .select(ENTRY_COLUMNS)
      .execute();
    return rows.map(entryFrom);
  }

  /** Which of these ids have an entry that has not ended. */
  async filterLive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const live = new Set<string>();
    for (let from = 0; from < ids.length; from += 500) {
      const rows = await this.#db
        .selectFrom("sandboxes")
        .where("id", "in", ids.slice(from, from + 500))
        .where("state", "!=", "ended")
        .select("id")
        .execute();
      for (const row of rows) live.add(row.id);
    }
    return live;
  }

  /** The route of a sandbox whose time is not over: one read of the primary key. */
  async findRoute(id: string, now: number): Promise<SandboxRoute | undefined> {
    const row = await this.#db
      .selectFrom("sandboxes")
      .where("id", "=", id)
      .where("state", "=", "running")
      .where("end_at", ">", now)
      .select(["node_id", "node_url"])
      .executeTakeFirst();
    return row && { nodeId: row.node_id, nodeUrl: row.node_url };
  }

  /** How many sandboxes each node has or is about to have. */
  async countByNode(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("state", "in", ["starting", "running"])
      .groupBy("node_id")
      .select((eb) => ["node_id", eb.fn.countAll<number>().as("count")])
      .execute();
    return new Map(rows.map((row) => [row.node_id, row.count]));
  }

  /** Forgets sandboxes that ended before a time. Returns how many. */
  async forgetEnded(before: number): Promise<number> {
    const result = await this.#db
      .deleteFrom("sandboxes")
      .where("state", "=", sql.lit("ended"))
      .where("ended_at", "<", before)
      .executeTakeFirst();
    return Number(result.numDeletedRows);
  }

  #matching(filter: SandboxFilter): RunningQuery<object> {
    let query: RunningQuery<object> = this.#db.selectFrom("sandboxes").where("team_id", "=", filter.teamId).where("state", "=", "running");
    if (filter.templateId !== undefined) query = query.where("template_id", "=", filter.templateId);
    if (filter.startedFrom !== undefined) query = query.where("started_at", ">=", filter.startedFrom);
    if (filter.metadata && Object.keys(filter.metadata).length > 0) {
      query = query.where(jsonContains(this.#dialect, "metadata", filter.metadata));
    }
    return query;
  }
}
