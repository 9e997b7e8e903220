// The audit log. A request that changes something leaves a begun line with its first change (`audited-dialect.ts`). When it is answered, its
// process appends the complete line, with a number, and removes the begun one. Lines are appended and never changed: a trigger refuses it.

import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import type { DialectName } from "../dialect/json-contains.ts";
import type { Database } from "../tables.ts";
import { type AuditFacts, type AuditLine, type AuditOutcome, auditLineFrom, auditRow, type NewAuditLine } from "./audit-line.ts";

export interface AuditFilter {
  /** Absent: the lines of all teams, and those without one. */
  readonly teamId?: string;
  readonly actor?: string;
  readonly operation?: string;
  /** The id in the path. */
  readonly subjectId?: string;
  readonly requestId?: string;
  readonly address?: string;
  readonly outcome?: AuditOutcome;
  /** Only from this time on, and before that one. */
  readonly from?: number;
  readonly to?: number;
}

export interface AuditPage {
  readonly order: "asc" | "desc";
  readonly limit: number;
  /** The page begins after the line with this number, in its direction. */
  readonly after?: number;
}

export interface AuditPart {
  readonly items: readonly AuditLine[];
  /** Where the next part begins. Undefined: there are no more lines. */
  readonly next: number | undefined;
}

/**
 * Lines that one call looks through. The lines are read in their order, and filters other than the team and the time have no index: they
 * would have to be kept up with every change. So a part may have few lines, or none, although others follow.
 */
const LINES_LOOKED_THROUGH = 5_000;

export class AuditRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Appends lines, and removes the begun lines of the same requests. */
  async append(lines: readonly NewAuditLine[], now: number): Promise<void> {
    if (lines.length === 0) return;
    await this.#db.transaction().execute(async (tx) => {
      await appendAuditLines(tx, { dialect: this.#dialect, lines, now });
      const begun = lines.flatMap(({ requestId }) => requestId ?? []);
      for (let from = 0; from < begun.length; from += 500) {
        await tx
          .deleteFrom("audit_pending")
          .where("request_id", "in", begun.slice(from, from + 500))
          .execute();
      }
    });
  }

  /** The processes whose requests have begun lines. */
  async runsWithBegunLines(): Promise<readonly string[]> {
    const rows = await this.#db.selectFrom("audit_pending").select("run").distinct().execute();
    return rows.map(({ run }) => run);
  }

  /** Completes begun lines of processes that ended. Their outcome is unknown. Returns how many there were. */
  async completeLost(runs: readonly string[], now: number): Promise<number> {
    if (runs.length === 0) return 0;
    const rows = await this.#db.selectFrom("audit_pending").where("run", "in", runs).limit(500).select("facts").execute();
    const open = { outcome: "unknown", status: null, reason: null, durationMs: null, madeIds: null, count: 1 } as const;
    await this.append(
      rows.map(({ facts }) => ({ ...(JSON.parse(facts) as AuditFacts), ...open })),
      now,
    );
    return rows.length;
  }

  async list(filter: AuditFilter, page: AuditPage): Promise<AuditPart> {
    const range = await this.#range(filter);
    if (!range) return { items: [], next: undefined };
    const looked = this.#inOrder(filter, page, range).limit(LINES_LOOKED_THROUGH).selectAll().as("audit_log");
    let query = this.#db.selectFrom(looked).selectAll();
    const wanted = {
      actor: filter.actor,
      operation: filter.operation,
      subject_id: filter.subjectId,
      request_id: filter.requestId,
      address: filter.address,
      outcome: filter.outcome,
    };
    for (const [column, value] of Object.entries(wanted)) {
      if (value !== undefined) query = query.where(sql.ref(column), "=", value);
    }
    const rows = await query
      .orderBy("number", page.order)
      .limit(page.limit + 1)
      .execute();
    const items = rows.slice(0, page.limit).map(auditLineFrom);
    if (rows.length > page.limit) return { items, next: items.at(-1)?.number };
    const last = await this.#inOrder(filter, page, range)
      .offset(LINES_LOOKED_THROUGH - 1)
      .limit(1)
      .select("number")
      .executeTakeFirst();
    return { items, next: last?.number };
  }

  /** Deletes lines that are too old or too many, at most `limit`. Returns how many. */
  async trim({ before, max }: { readonly before: number; readonly max: number }, limit = 1_000): Promise<number> {
    const counter = await this.#db.selectFrom("audit_counter").select("last").executeTakeFirstOrThrow();
    const young = await this.#db
      .selectFrom("audit_log")
      .where("at", ">=", before)
      .orderBy("at")
      .orderBy("number")
      .limit(1)
      .select("number")
      .executeTakeFirst();
    const firstKept = Math.max(young?.number ?? counter.last + 1, counter.last + 1 - max);
    const oldest = this.#db.selectFrom("audit_log").where("number", "<", firstKept).orderBy("number").limit(limit).select("number");
    const { numDeletedRows } = await this.#db.deleteFrom("audit_log").where("number", "in", oldest).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  #inOrder({ teamId }: AuditFilter, { order, after }: AuditPage, range: { readonly first: number; readonly end: number | undefined }) {
    let query: SelectQueryBuilder<Database, "audit_log", object> = this.#db.selectFrom("audit_log").where("number", ">=", range.first);
    if (range.end !== undefined) query = query.where("number", "<", range.end);
    if (teamId !== undefined) query = query.where("team_id", "=", teamId);
    if (after !== undefined) query = query.where("number", order === "asc" ? ">" : "<", after);
    return query.orderBy("number", order);
  }

  /** The numbers of the lines in a range of times: times rise with the numbers. Undefined when there are none. */
  async #range({ from, to }: AuditFilter): Promise<{ readonly first: number; readonly end: number | undefined } | undefined> {
    const since = async (time: number) =>
      (
        await this.#db
          .selectFrom("audit_log")
          .where("at", ">=", time)
          .orderBy("at")
          .orderBy("number")
          .limit(1)
          .select("number")
          .executeTakeFirst()
      )?.number;
    const first = from === undefined ? 0 : await since(from);
    if (first === undefined) return undefined;
    return { first, end: to === undefined ? undefined : await since(to) };
  }
}

/**
 * Appends lines in the transaction of their change. One process at a time appends, until its transaction ends, so that a reader that has seen a
 * number has seen every lower one.
 */
export async function appendAuditLines(
  tx: Kysely<Database>,
  { dialect, lines, now }: { readonly dialect: DialectName; readonly lines: readonly NewAuditLine[]; readonly now: number },
): Promise<void> {
  const counter = tx.selectFrom("audit_counter").select(["last", "last_at"]);
  const { last, last_at } = await (dialect === "postgres" ? counter.forUpdate() : counter).executeTakeFirstOrThrow();
  const at = Math.max(now, last_at);
  const rows = lines.map((line, index) => auditRow(line, { number: last + 1 + index, at }));
  for (let from = 0; from < rows.length; from += 500) {
    await tx
      .insertInto("audit_log")
      .values(rows.slice(from, from + 500))
      .execute();
  }
  await tx
    .updateTable("audit_counter")
    .set({ last: last + lines.length, last_at: at })
    .execute();
}
