// Every change of state is a compare-and-set on the state it starts from: of several processes that try, one wins,
// and the others read what became of it. Nothing here decides which change is allowed; callers do.

import { type Kysely, sql } from "kysely";
import type { DialectName } from "./dialect/json-contains.ts";
import { imageRow, type NewImage } from "./image.ts";
import { ENTRY_COLUMNS, entryFrom, type NewSandbox, type Sandbox, type SandboxEntry, type SandboxState, sandboxFrom } from "./sandbox.ts";
import { type Expiry, expireSandboxes } from "./sandbox-expiry.ts";
import { countSandboxes, listSandboxes, type SandboxFilter, type SandboxPage } from "./sandbox-lists.ts";
import { changeState, type Inserted, insertSandbox, type SandboxTransition, type TransitionReason } from "./sandbox-transition.ts";
import type { Database } from "./tables.ts";

const MEMORY_LOST = "memory_lost: ";

export interface SandboxStart {
  readonly startedAt: number;
  readonly endAt: number;
  readonly runtime: string;
  readonly agentVersion: string;
}

export interface SandboxRoute {
  readonly nodeId: string;
  readonly nodeUrl: string;
  /** Another one after each resume. */
  readonly startedAt: number;
}

/** One line of what a sandbox went through. */
export interface SandboxEventRecord {
  readonly version: number;
  readonly at: number;
  readonly from: SandboxState | null;
  readonly to: SandboxState;
  readonly event: string;
  readonly reason: string | null;
  readonly actor: string;
}

/** Sandboxes, from the entry that is made before anything else of them to the one that says how they ended. */
export class SandboxRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Writes the entry in state `starting`. */
  async insert(sandbox: NewSandbox, about: Inserted): Promise<void> {
    await this.#db.transaction().execute((tx) => insertSandbox(tx, this.#dialect, sandbox, about));
  }

  async find(id: string): Promise<Sandbox | undefined> {
    const row = await this.#db.selectFrom("sandboxes").where("id", "=", id).selectAll().executeTakeFirst();
    return row && sandboxFrom(row);
  }

  /** The state alone, for those who wait for another one. */
  async findState(id: string): Promise<SandboxState | undefined> {
    const row = await this.#db.selectFrom("sandboxes").where("id", "=", id).select("state").executeTakeFirst();
    return row?.state as SandboxState | undefined;
  }

  /** From `starting` to `running`, and counted for its template: one commit. Undefined when it was not starting any more. */
  async start(
    id: string,
    start: SandboxStart & { readonly actor: string; readonly reason?: TransitionReason },
  ): Promise<Sandbox | undefined> {
    const { startedAt, actor, reason, ...rest } = start;
    return await this.#db.transaction().execute(async (tx) => {
      const change = {
        id,
        from: "starting",
        to: "running",
        event: "started",
        actor,
        now: startedAt,
        ...(reason ? { reason } : {}),
      } as const;
      const sandbox = await changeState(tx, this.#dialect, { ...change, set: { startedAt, ...rest } });
      if (!sandbox) return undefined;
      await tx
        .updateTable("templates")
        .set((eb) => ({ spawn_count: eb("spawn_count", "+", 1), last_spawned_at: startedAt }))
        .where("id", "=", sandbox.templateId)
        .execute();
      return sandbox;
    });
  }

  /** The sandbox as it is afterwards, when this call made the change. */
  async transition(id: string, change: SandboxTransition): Promise<Sandbox | undefined> {
    return await this.#db.transaction().execute((tx) => changeState(tx, this.#dialect, { ...change, id }));
  }

  /**
   * Sets when a sandbox that runs now ends. With `onlyLater` an end that is later already stays. True when it was changed.
   * One whose time is over can't be held, unless it is to be paused then, which has not begun.
   */
  async setEnd(id: string, end: { readonly endAt: number; readonly now: number; readonly onlyLater: boolean }): Promise<boolean> {
    let update = this.#db
      .updateTable("sandboxes")
      .set({ end_at: end.endAt, expire_not_before: null })
      .where("id", "=", id)
      .where("state", "=", "running")
      .where((eb) => eb.or([eb("end_at", ">", end.now), eb("auto_pause", "=", 1)]));
    if (end.onlyLater) update = update.where("end_at", "<", end.endAt);
    return (await update.executeTakeFirst()).numUpdatedRows === 1n;
  }

  /** Its time is over, but it could not be paused: it is not looked at again before then. */
  async putOffExpiry(id: string, notBefore: number): Promise<void> {
    await this.#db
      .updateTable("sandboxes")
      .set({ expire_not_before: notBefore })
      .where("id", "=", id)
      .where("state", "=", "running")
      .execute();
  }

  /** Tells the image of a sandbox that is being paused, before it is taken. False when it is not any more. */
  async beginImage(id: string, image: NewImage): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const updated = await tx
        .updateTable("sandboxes")
        .set({ image_id: image.id, owner: image.owner })
        .where("id", "=", id)
        .where("state", "=", "pausing")
        .where("image_id", "is", null)
        .executeTakeFirst();
      if (updated.numUpdatedRows !== 1n) return false;
      await tx.insertInto("images").values(imageRow(image)).execute();
      return true;
    });
  }

  /** Says that the process that worked on it does not any more, and that its state has to be found out. */
  async disown(sandbox: Pick<Sandbox, "id" | "version">): Promise<void> {
    await this.#db
      .updateTable("sandboxes")
      .set({ owner: "" })
      .where("id", "=", sandbox.id)
      .where("version", "=", sandbox.version)
      .execute();
  }

  async list(filter: SandboxFilter, page: SandboxPage): Promise<readonly Sandbox[]> {
    return await listSandboxes(this.#db, this.#dialect, { filter, page });
  }

  async count(filter: SandboxFilter): Promise<number> {
    return await countSandboxes(this.#db, this.#dialect, filter);
  }

  /** Asked several times a second, mostly in vain: what is due is looked for before anything is locked. */
  async expire(expiry: Expiry): Promise<readonly SandboxEntry[]> {
    const due = this.#db.selectFrom("sandboxes").where("state", "=", sql.lit("running")).where("end_at", "<=", expiry.now).select("id");
    if ((await due.limit(1).executeTakeFirst()) === undefined) return [];
    return await this.#db.transaction().execute((tx) => expireSandboxes(tx, expiry));
  }

  /** Sandboxes that have been in a passing state since `before` or longer, the oldest first. */
  async listUnsettled(state: SandboxState, before: number, limit: number): Promise<readonly SandboxEntry[]> {
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

  /** Paused ones that were to be kept until before `now`, the longest overdue first. */
  async listNotKept(now: number, limit: number): Promise<readonly SandboxEntry[]> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("state", "=", sql.lit("paused"))
      .where("keep_until", "<=", now)
      .orderBy("keep_until")
      .limit(limit)
      .select(ENTRY_COLUMNS)
      .execute();
    return rows.map(entryFrom);
  }

  async listOnNode(nodeId: string, states: readonly SandboxState[]): Promise<readonly SandboxEntry[]> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("node_id", "=", nodeId)
      .where("state", "in", states)
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

  /** In which of these states a template has sandboxes. */
  async hasOfTemplate(templateId: string, states: readonly SandboxState[]): Promise<boolean> {
    const row = await this.#db
      .selectFrom("sandboxes")
      .where("template_id", "=", templateId)
      .where("state", "in", states)
      .select("id")
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** The route of a sandbox whose time is not over: one read of the primary key. */
  async findRoute(id: string, now: number): Promise<SandboxRoute | undefined> {
    const row = await this.#db
      .selectFrom("sandboxes")
      .where("id", "=", id)
      .where("state", "in", ["running", "snapshotting"])
      .where("end_at", ">", now)
      .select(["node_id", "node_url", "started_at"])
      .executeTakeFirst();
    return row && { nodeId: row.node_id, nodeUrl: row.node_url, startedAt: row.started_at ?? 0 };
  }

  /** The ids of the sandboxes that have a route, the ones that started last first. */
  async listRoutedIds(now: number, limit: number): Promise<readonly string[]> {
    // A query for each state, because SQLite uses the partial index of a state only for a search for that state alone.
    const inState = (state: SandboxState) =>
      this.#db.selectFrom("sandboxes").where("state", "=", sql.lit(state)).where("end_at", ">", now).select(["id", "started_at"]);
    const routed = inState("running").unionAll(inState("snapshotting"));
    const rows = await routed.orderBy("started_at", "desc").limit(limit).execute();
    return rows.map((row) => row.id);
  }

  /** How many sandboxes each node has or is about to have. */
  async countByNode(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("state", "in", ["starting", "running", "snapshotting", "pausing", "resuming"])
      .groupBy("node_id")
      .select((eb) => ["node_id", eb.fn.countAll<number>().as("count")])
      .execute();
    return new Map(rows.map((row) => [row.node_id, row.count]));
  }

  /** What a sandbox went through, the oldest first. */
  async listEvents(id: string): Promise<readonly SandboxEventRecord[]> {
    const rows = await this.#db.selectFrom("sandbox_events").where("sandbox_id", "=", id).orderBy("version").selectAll().execute();
    return rows.map((row) => ({
      version: row.version,
      at: row.at,
      from: row.from_state as SandboxState | null,
      to: row.to_state as SandboxState,
      event: row.event,
      reason: row.reason,
      actor: row.actor,
    }));
  }

  /** Why the last pause of a sandbox has cost it its memory; undefined when it has not. */
  async findLossOfPause(id: string): Promise<string | undefined> {
    const paused = this.#db.selectFrom("sandbox_events").where("sandbox_id", "=", id).where("event", "=", "paused");
    const row = await paused.orderBy("version", "desc").select("reason").limit(1).executeTakeFirst();
    return row?.reason?.startsWith(MEMORY_LOST) ? row.reason.slice(MEMORY_LOST.length) : undefined;
  }

  /** What made a sandbox's state the one of that version; undefined when it never was. */
  async findEvent(id: string, version: number): Promise<string | undefined> {
    const query = this.#db.selectFrom("sandbox_events").where("sandbox_id", "=", id).where("version", "=", version);
    return (await query.select("event").executeTakeFirst())?.event;
  }

  /** Forgets sandboxes that ended before a time, and what they went through. Returns how many. */
  async forgetEnded(before: number, limit = 1_000): Promise<number> {
    return await this.#db.transaction().execute(async (tx) => {
      const rows = await tx
        .selectFrom("sandboxes")
        .where("state", "=", sql.lit("ended"))
        .where("ended_at", "<", before)
        .limit(limit)
        .select("id")
        .execute();
      const ids = rows.map((row) => row.id);
      for (let from = 0; from < ids.length; from += 500) {
        const some = ids.slice(from, from + 500);
        await tx.deleteFrom("sandbox_events").where("sandbox_id", "in", some).execute();
        await tx.deleteFrom("sandboxes").where("id", "in", some).execute();
      }
      return ids.length;
    });
  }
}
