// The repository of sandboxes. Every change of state is a compare-and-set: when several processes try, one succeeds, and the others read
// the new state. The callers decide which changes are allowed.

import type { SandboxOptions } from "@skerry/wire/node";
import { type Kysely, sql } from "kysely";
import type { DialectName } from "./dialect/json-contains.ts";
import { recordEvent } from "./events/record-event.ts";
import { eventOfUpdate } from "./events/sandbox-events.ts";
import { imageRow, type NewImage } from "./image.ts";
import { sandboxEnds, sandboxTransitions } from "./metrics.ts";
import { OptionsChanges } from "./options-changes.ts";
import {
  ENTRY_COLUMNS,
  type EndReason,
  entryFrom,
  type NewSandbox,
  optionsFrom,
  type Sandbox,
  type SandboxEntry,
  type SandboxState,
  sandboxFrom,
} from "./sandbox.ts";
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
  readonly teamId: string;
  readonly nodeId: string;
  readonly nodeUrl: string;
  /** Changes with each resume. */
  readonly startedAt: number;
  readonly options: SandboxOptions;
}

/** One entry of a sandbox's journal. */
export interface SandboxEventRecord {
  readonly version: number;
  readonly at: number;
  readonly from: SandboxState | null;
  readonly to: SandboxState;
  readonly event: string;
  readonly reason: string | null;
  readonly actor: string;
}

/** Called after the transaction, so that a change which was rolled back does not count. */
function countTransition(from: SandboxState | "none", to: SandboxState, endReason: EndReason | null = null, count = 1): void {
  sandboxTransitions.inc({ from, to }, count);
  if (to === "ended") sandboxEnds.inc({ reason: endReason ?? "unknown" }, count);
}

/** Sandboxes, from the row that is written before their start to the row that states how they ended. */
export class SandboxRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  /** Changes of the options of sandboxes. */
  readonly changes: OptionsChanges;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.changes = new OptionsChanges(db);
    this.#dialect = dialect;
  }

  /** Inserts a row in the state `starting`. */
  async insert(sandbox: NewSandbox, about: Inserted): Promise<void> {
    await this.#db.transaction().execute((tx) => insertSandbox(tx, this.#dialect, sandbox, about));
    countTransition("none", "starting");
  }

  async find(id: string): Promise<Sandbox | undefined> {
    const row = await this.#db.selectFrom("sandboxes").where("id", "=", id).selectAll().executeTakeFirst();
    return row && sandboxFrom(row);
  }

  /** Reads the state alone, for callers that wait for a change. */
  async findState(id: string): Promise<SandboxState | undefined> {
    const row = await this.#db.selectFrom("sandboxes").where("id", "=", id).select("state").executeTakeFirst();
    return row?.state as SandboxState | undefined;
  }

  /** Moves a sandbox from `starting` to `running` and counts it for its template, in one transaction. Returns undefined in any other state. */
  async start(
    id: string,
    start: SandboxStart & { readonly actor: string; readonly reason?: TransitionReason },
  ): Promise<Sandbox | undefined> {
    const { startedAt, actor, reason, ...rest } = start;
    const started = await this.#db.transaction().execute(async (tx) => {
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
    if (started) countTransition("starting", "running");
    return started;
  }

  /** Returns the changed sandbox; undefined when this call did not make the change. */
  async transition(id: string, change: SandboxTransition): Promise<Sandbox | undefined> {
    const changed = await this.#db.transaction().execute((tx) => changeState(tx, this.#dialect, { ...change, id }));
    if (changed) countTransition(change.from, change.to, changed.endReason);
    return changed;
  }

  /**
   * Sets the end of a running sandbox. With `onlyLater`, a later end stays. Returns whether the end was changed. An expired sandbox cannot be
   * extended, unless it has autoPause and the pause has not begun.
   */
  async setEnd(id: string, end: { readonly endAt: number; readonly now: number; readonly onlyLater: boolean }): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      let update = tx
        .updateTable("sandboxes")
        .set({ end_at: end.endAt, expire_not_before: null })
        .where("id", "=", id)
        .where("state", "=", "running")
        .where((eb) => eb.or([eb("end_at", ">", end.now), eb("auto_pause", "=", 1)]));
      if (end.onlyLater) update = update.where("end_at", "<", end.endAt);
      const row = await update.returningAll().executeTakeFirst();
      if (row) await recordEvent(tx, eventOfUpdate(row, end));
      return row !== undefined;
    });
  }

  /** Delays the next attempt to pause an expired sandbox. */
  async putOffExpiry(id: string, notBefore: number): Promise<void> {
    await this.#db
      .updateTable("sandboxes")
      .set({ expire_not_before: notBefore })
      .where("id", "=", id)
      .where("state", "=", "running")
      .execute();
  }

  /** Assigns an image to a sandbox in `pausing`, before it is taken. Returns false when the sandbox is not in `pausing` any more. */
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

  /** Records that no process works on the sandbox any more, so that the reconciliation settles it. */
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

  /** Called several times a second, mostly without a result. Therefore it looks for expired sandboxes before it locks anything. */
  async expire(expiry: Expiry): Promise<readonly SandboxEntry[]> {
    const due = this.#db.selectFrom("sandboxes").where("state", "=", sql.lit("running")).where("end_at", "<=", expiry.now).select("id");
    if ((await due.limit(1).executeTakeFirst()) === undefined) return [];
    const expired = await this.#db.transaction().execute((tx) => expireSandboxes(tx, expiry));
    countTransition("running", expiry.to, null, expired.length);
    return expired;
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

  /** Paused sandboxes that were to be kept until a time before `now`, the longest overdue first. */
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

  /** Sandboxes that a shutdown suspended, and that are still paused. */
  async listSuspended(limit: number): Promise<readonly Sandbox[]> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("resume_ms", "is not", null)
      .where("state", "=", "paused")
      .orderBy("id")
      .limit(limit)
      .selectAll()
      .execute();
    return rows.map(sandboxFrom);
  }

  /** Takes the mark of the shutdown from a sandbox that has not changed since. */
  async forgetSuspended({ id, version }: Pick<Sandbox, "id" | "version">): Promise<void> {
    await this.#db
      .updateTable("sandboxes")
      .set({ resume_ms: null, suspended_by: null })
      .where("id", "=", id)
      .where("version", "=", version)
      .execute();
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

  /** The running ones of the ids, with what their callers chose. */
  async listRunning(ids: readonly string[]): Promise<readonly Pick<Sandbox, "id" | "teamId" | "options">[]> {
    const found: Pick<Sandbox, "id" | "teamId" | "options">[] = [];
    for (let from = 0; from < ids.length; from += 500) {
      const rows = await this.#db
        .selectFrom("sandboxes")
        .where("id", "in", ids.slice(from, from + 500))
        .where("state", "=", "running")
        .select(["id", "team_id", "options"])
        .execute();
      found.push(...rows.map((row) => ({ id: row.id, teamId: row.team_id, options: optionsFrom(row) })));
    }
    return found;
  }

  /** Returns those of the ids whose sandboxes have not ended. */
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

  /** Whether a template has a sandbox in one of these states. */
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

  /** The route of a running sandbox whose timeout has not passed: one read by primary key. */
  async findRoute(id: string, now: number): Promise<SandboxRoute | undefined> {
    const row = await this.#db
      .selectFrom("sandboxes")
      .where("id", "=", id)
      .where("state", "in", ["running", "snapshotting"])
      .where("end_at", ">", now)
      .select(["id", "team_id", "node_id", "node_url", "started_at", "options"])
      .executeTakeFirst();
    if (!row) return undefined;
    const options = optionsFrom(row);
    return { teamId: row.team_id, nodeId: row.node_id, nodeUrl: row.node_url, startedAt: row.started_at ?? 0, options };
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

  /** The number of sandboxes on each node, including those that are being started. */
  async countByNode(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("state", "in", ["starting", "running", "snapshotting", "pausing", "resuming"])
      .groupBy("node_id")
      .select((eb) => ["node_id", eb.fn.countAll<number>().as("count")])
      .execute();
    return new Map(rows.map((row) => [row.node_id, row.count]));
  }

  /** The journal of a sandbox, the oldest entry first. */
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

  /** Why the last pause of a sandbox lost its memory; undefined when it did not. */
  async findLossOfPause(id: string): Promise<string | undefined> {
    const paused = this.#db.selectFrom("sandbox_events").where("sandbox_id", "=", id).where("event", "=", "paused");
    const row = await paused.orderBy("version", "desc").select("reason").limit(1).executeTakeFirst();
    return row?.reason?.startsWith(MEMORY_LOST) ? row.reason.slice(MEMORY_LOST.length) : undefined;
  }

  /** The event that led to this version of a sandbox; undefined when there was no such version. */
  async findEvent(id: string, version: number): Promise<string | undefined> {
    const query = this.#db.selectFrom("sandbox_events").where("sandbox_id", "=", id).where("version", "=", version);
    return (await query.select("event").executeTakeFirst())?.event;
  }

  /** Deletes sandboxes that ended before a time, with their journals. Returns how many. */
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
        await tx.deleteFrom("sandbox_metrics").where("sandbox_id", "in", some).execute();
        await tx.deleteFrom("sandbox_events").where("sandbox_id", "in", some).execute();
        await tx.deleteFrom("sandboxes").where("id", "in", some).execute();
      }
      return ids.length;
    });
  }
}
