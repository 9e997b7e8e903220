import { type Kysely, sql } from "kysely";
import type { LogOwner } from "./append-log.ts";
import type { EgressCountColumns, EgressLineTable } from "./egress-tables.ts";
import type { Database } from "./tables.ts";

export interface EgressCounts {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly connections: number;
  readonly refused: number;
}

export interface EgressLine {
  readonly sandboxId: string;
  readonly at: number;
  readonly protocol: string;
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly isAllowed: boolean;
  readonly rule: string;
  /** How many attempts the line stands for. */
  readonly count: number;
}

/** What a process of a node has about its sandboxes since its last batch. */
export interface EgressBatch {
  readonly source: string;
  /** Rises with each batch of the source. */
  readonly number: number;
  readonly lines: readonly EgressLine[];
  readonly counts: readonly (EgressCounts & { readonly sandboxId: string })[];
}

export interface EgressWindow {
  /** Only lines after this position. */
  readonly after: number;
  readonly limit: number;
  /** Only lines from this time on, and before that one. */
  readonly start?: number;
  readonly end?: number;
  readonly isAllowed?: boolean;
}

export interface EgressRetention {
  /** Logs without a line since then are deleted. */
  readonly linesBefore: number;
  /** So are sums of a team before this time. */
  readonly countsBefore: number;
  readonly maxTeamLines: number;
}

/** Lines of one log. A log that exceeds it loses a quarter of them, so that not every further line removes one. */
const MAX_LINES = 10_000;
/** Rows of one statement. Each has twelve parameters, and SQLite takes 32,766. */
const ROWS_AT_ONCE = 1_000;
/** Counts of a team are summed up in steps of five minutes. */
export const EGRESS_STEP_MS = 300_000;
const LOGS_AT_ONCE = 200;
const NOTHING: EgressCounts = { sentBytes: 0, receivedBytes: 0, connections: 0, refused: 0 };

/** What sandboxes reached and tried to reach: the lines of each, and the counts of their teams. */
export class EgressRepository {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Adds a batch, unless it is stored already, whichever process delivers it. Batches of sandboxes without a row are dropped. */
  async add(batch: EgressBatch, now: number, { maxLines = MAX_LINES } = {}): Promise<void> {
    const { source, number } = batch;
    await this.#db.transaction().execute(async (tx) => {
      // The statement locks the row, so that another process that delivers the same batch waits here and then finds its number.
      const known = await tx
        .insertInto("egress_sources")
        .values({ source, number: -1, changed_at: now })
        .onConflict((conflict) => conflict.column("source").doUpdateSet({ changed_at: now }))
        .returning("number")
        .executeTakeFirstOrThrow();
      if (known.number >= number) return;
      await tx.updateTable("egress_sources").set({ number }).where("source", "=", source).execute();
      await addToLogs(tx, batch, { now, maxLines });
    });
  }

  /** The oldest first. Nothing from the log of another team's sandbox. */
  async read({ sandboxId, teamId }: LogOwner, window: EgressWindow): Promise<readonly (EgressLine & { readonly position: number })[]> {
    const { after, limit, start, end, isAllowed } = window;
    let query = this.#db
      .selectFrom("egress_lines")
      .innerJoin("egress_logs", "egress_logs.sandbox_id", "egress_lines.sandbox_id")
      .where("egress_lines.sandbox_id", "=", sandboxId)
      .where("egress_logs.team_id", "=", teamId)
      .where("position", ">", after);
    if (start !== undefined) query = query.where("at", ">=", start);
    if (end !== undefined) query = query.where("at", "<", end);
    if (isAllowed !== undefined) query = query.where("is_allowed", "=", Number(isAllowed));
    const rows = await query.orderBy("position").limit(limit).selectAll("egress_lines").execute();
    return rows.map((row) => ({ ...lineFrom(row), position: row.position }));
  }

  /** What a sandbox of the team sent and received in all. */
  async totals({ sandboxId, teamId }: LogOwner): Promise<EgressCounts> {
    const row = await this.#db
      .selectFrom("egress_logs")
      .where("sandbox_id", "=", sandboxId)
      .where("team_id", "=", teamId)
      .select(["sent", "received", "connections", "refused"])
      .executeTakeFirst();
    return row ? countsFrom(row) : NOTHING;
  }

  /** The counts of a team from `start` to `end`, both included, in steps of five minutes, the oldest first. Steps without any are missing. */
  async ofTeam(teamId: string, { start, end }: { readonly start: number; readonly end: number }) {
    const rows = await this.#db
      .selectFrom("team_egress")
      .where("team_id", "=", teamId)
      .where("at", ">=", start - (start % EGRESS_STEP_MS))
      .where("at", "<=", end)
      .orderBy("at")
      .selectAll()
      .execute();
    return rows.map((row) => ({ at: row.at, ...countsFrom(row) }));
  }

  /** Deletes what is too old, and the logs that have been silent for longest of teams that have too many lines. */
  async forget({ linesBefore, countsBefore, maxTeamLines }: EgressRetention): Promise<void> {
    await this.#db.deleteFrom("egress_sources").where("changed_at", "<", linesBefore).execute();
    await this.#db.deleteFrom("team_egress").where("at", "<", countsBefore).execute();
    for (let count = LOGS_AT_ONCE; count === LOGS_AT_ONCE; )
      count = await this.#forgetLogs((query) => query.where("changed_at", "<", linesBefore));
    for (;;) {
      const tooMuch = await this.#db
        .selectFrom("egress_logs")
        .groupBy("team_id")
        .having((eb) => eb(eb.fn.sum("lines"), ">", maxTeamLines))
        .select("team_id")
        .limit(1)
        .executeTakeFirst();
      if (!tooMuch) return;
      await this.#forgetLogs((query) => query.where("team_id", "=", tooMuch.team_id), 1);
    }
  }

  async #forgetLogs(which: (query: ReturnType<typeof idsOf>) => ReturnType<typeof idsOf>, limit = LOGS_AT_ONCE): Promise<number> {
    const rows = await which(idsOf(this.#db)).orderBy("changed_at").limit(limit).execute();
    const ids = rows.map(({ sandbox_id }) => sandbox_id);
    if (ids.length > 0) await this.#db.deleteFrom("egress_logs").where("sandbox_id", "in", ids).execute();
    return ids.length;
  }
}

function idsOf(db: Kysely<Database>) {
  return db.selectFrom("egress_logs").select("sandbox_id");
}

interface Added {
  readonly lines: EgressLine[];
  counts: EgressCounts;
}

async function addToLogs(tx: Kysely<Database>, batch: EgressBatch, about: { readonly now: number; readonly maxLines: number }) {
  const { now, maxLines } = about;
  const added = bySandbox(batch);
  const ids = [...added.keys()];
  if (ids.length === 0) return;
  const owners = await tx.selectFrom("sandboxes").where("id", "in", ids).orderBy("id").select(["id", "team_id"]).execute();
  if (owners.length === 0) return;
  // One statement makes room in all logs, in the order of their ids, so that two batches never wait for each other.
  const logs = await tx
    .insertInto("egress_logs")
    .values(
      owners.map(({ id, team_id }) => {
        const { lines, counts } = added.get(id) ?? { lines: [], counts: NOTHING };
        return { sandbox_id: id, team_id, last_position: lines.length, lines: lines.length, changed_at: now, ...columnsOf(counts) };
      }),
    )
    .onConflict((conflict) =>
      conflict.column("sandbox_id").doUpdateSet({
        last_position: sql`egress_logs.last_position + excluded.last_position`,
        lines: sql`egress_logs.lines + excluded.lines`,
        changed_at: now,
        ...sums("egress_logs"),
      }),
    )
    .returning(["sandbox_id", "last_position", "lines"])
    .execute();
  const rows = logs.flatMap(({ sandbox_id, last_position }) => {
    const { lines = [] } = added.get(sandbox_id) ?? {};
    return lines.map((line, index) => rowOf(line, last_position - lines.length + 1 + index));
  });
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    await tx
      .insertInto("egress_lines")
      .values(rows.slice(from, from + ROWS_AT_ONCE))
      .execute();
  }
  const kept = maxLines - Math.floor(maxLines / 4);
  for (const { sandbox_id: id, last_position: last } of logs.filter(({ lines }) => lines > maxLines)) {
    await tx
      .deleteFrom("egress_lines")
      .where("sandbox_id", "=", id)
      .where("position", "<=", last - kept)
      .execute();
    await tx.updateTable("egress_logs").set({ lines: kept }).where("sandbox_id", "=", id).execute();
  }
  await addToTeams(
    tx,
    owners.map(({ id, team_id }) => ({ teamId: team_id, counts: added.get(id)?.counts ?? NOTHING })),
    now,
  );
}

async function addToTeams(
  tx: Kysely<Database>,
  changes: readonly { readonly teamId: string; readonly counts: EgressCounts }[],
  now: number,
) {
  const teams = new Map<string, EgressCounts>();
  for (const { teamId, counts } of changes) teams.set(teamId, sum(teams.get(teamId) ?? NOTHING, counts));
  const at = now - (now % EGRESS_STEP_MS);
  const rows = [...teams]
    .filter(([, counts]) => Object.values(counts).some((count) => count > 0))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([teamId, counts]) => ({ team_id: teamId, at, ...columnsOf(counts) }));
  if (rows.length === 0) return;
  await tx
    .insertInto("team_egress")
    .values(rows)
    .onConflict((conflict) => conflict.columns(["team_id", "at"]).doUpdateSet(sums("team_egress")))
    .execute();
}

function bySandbox({ lines, counts }: EgressBatch): Map<string, Added> {
  const added = new Map<string, Added>();
  const of = (id: string) => {
    const known = added.get(id) ?? { lines: [], counts: NOTHING };
    added.set(id, known);
    return known;
  };
  for (const line of lines) of(line.sandboxId).lines.push(line);
  for (const { sandboxId, ...more } of counts) {
    const one = of(sandboxId);
    one.counts = sum(one.counts, more);
  }
  return added;
}

function sum(one: EgressCounts, other: EgressCounts): EgressCounts {
  return {
    sentBytes: one.sentBytes + other.sentBytes,
    receivedBytes: one.receivedBytes + other.receivedBytes,
    connections: one.connections + other.connections,
    refused: one.refused + other.refused,
  };
}

function sums(table: "egress_logs" | "team_egress") {
  const added = (column: keyof EgressCountColumns) => sql<number>`${sql.ref(`${table}.${column}`)} + ${sql.ref(`excluded.${column}`)}`;
  return { sent: added("sent"), received: added("received"), connections: added("connections"), refused: added("refused") };
}

function columnsOf({ sentBytes, receivedBytes, connections, refused }: EgressCounts): EgressCountColumns {
  return { sent: sentBytes, received: receivedBytes, connections, refused };
}

function countsFrom({ sent, received, connections, refused }: EgressCountColumns): EgressCounts {
  return { sentBytes: sent, receivedBytes: received, connections, refused };
}

function rowOf(line: EgressLine, position: number): EgressLineTable {
  return {
    sandbox_id: line.sandboxId,
    position,
    at: line.at,
    protocol: line.protocol,
    name: line.name,
    address: line.address,
    port: line.port,
    sent: line.sentBytes,
    received: line.receivedBytes,
    is_allowed: Number(line.isAllowed),
    rule: line.rule,
    count: line.count,
  };
}

function lineFrom(row: EgressLineTable): EgressLine {
  return {
    sandboxId: row.sandbox_id,
    at: row.at,
    protocol: row.protocol,
    name: row.name,
    address: row.address,
    port: row.port,
    sentBytes: row.sent,
    receivedBytes: row.received,
    isAllowed: row.is_allowed === 1,
    rule: row.rule,
    count: row.count,
  };
}
