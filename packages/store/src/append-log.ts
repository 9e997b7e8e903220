// Appends lines to the log of a sandbox. Precondition of every function: it runs in a transaction.

import { type Kysely, sql } from "kysely";
import { LOG_LEVELS } from "./build-logs.ts";
import { boundedLine, type LogLine } from "./log-line.ts";
import type { Database } from "./tables.ts";

export interface LogBounds {
  readonly maxLines: number;
  readonly maxCharacters: number;
}

export const SANDBOX_LOG_BOUNDS: LogBounds = { maxLines: 10_000, maxCharacters: 4 * 1024 * 1024 };

export interface LogOwner {
  readonly sandboxId: string;
  readonly teamId: string;
}

/** Removed at once from a log that is too long, so that not every further line removes one. */
const REMOVED_SHARE = 4;

export async function appendLog(tx: Kysely<Database>, owner: LogOwner, lines: readonly LogLine[], bounds = SANDBOX_LOG_BOUNDS) {
  const log = await insertLines(tx, owner, lines);
  if (log && (log.lines > bounds.maxLines || log.characters > bounds.maxCharacters)) await shorten(tx, owner, bounds);
}

/** Appends those lines of a source that are not stored yet. Their numbers rise. */
export async function appendFromSource(
  tx: Kysely<Database>,
  owner: LogOwner,
  { source, lines }: { readonly source: string; readonly lines: readonly (LogLine & { readonly number: number })[] },
  bounds = SANDBOX_LOG_BOUNDS,
): Promise<void> {
  if (lines.length === 0) return;
  // Both statements lock their row, so that another process that delivers the same lines waits here and then finds their numbers.
  await touch(tx, owner, { at: 0, span: -1, count: 0, characters: 0 });
  const { number } = await tx
    .insertInto("log_sources")
    .values({ sandbox_id: owner.sandboxId, source, number: -1 })
    .onConflict((conflict) => conflict.columns(["sandbox_id", "source"]).doUpdateSet({ number: sql`log_sources.number` }))
    .returning("number")
    .executeTakeFirstOrThrow();
  let last = number;
  // A delivery may have a line twice.
  const fresh = lines.filter((line) => {
    if (line.number <= last) return false;
    last = line.number;
    return true;
  });
  if (fresh.length === 0) return;
  await tx
    .updateTable("log_sources")
    .set({ number: last })
    .where("sandbox_id", "=", owner.sandboxId)
    .where("source", "=", source)
    .execute();
  await appendLog(tx, owner, fresh, bounds);
}

async function insertLines(tx: Kysely<Database>, owner: LogOwner, lines: readonly LogLine[]) {
  const [first] = lines;
  if (!first) return undefined;
  let at = first.at - 1;
  const bounded = lines.map(boundedLine).map((line) => {
    at = Math.max(line.at, at + 1);
    return { ...line, at };
  });
  const characters = bounded.reduce((sum, line) => sum + line.message.length, 0);
  const span = at - first.at;
  const log = await touch(tx, owner, { at: first.at, span, count: lines.length, characters });
  // All lines together are moved behind those that the log has.
  const shift = log.last_at - span - first.at;
  const rows = bounded.map((line) => ({
    sandbox_id: owner.sandboxId,
    at: line.at + shift,
    level: LOG_LEVELS.indexOf(line.level),
    is_guest: Number(line.isGuest),
    logger: line.logger,
    message: line.message,
    fields: JSON.stringify(line.fields),
  }));
  for (let from = 0; from < rows.length; from += 1_000) {
    await tx
      .insertInto("log_lines")
      .values(rows.slice(from, from + 1_000))
      .execute();
  }
  return log;
}

/** Makes room for lines at the end of a log, in one statement. Returns the log with them. */
async function touch(
  tx: Kysely<Database>,
  { sandboxId, teamId }: LogOwner,
  added: { readonly at: number; readonly span: number; readonly count: number; readonly characters: number },
) {
  const { at, span, count, characters } = added;
  return await tx
    .insertInto("sandbox_logs")
    .values({
      sandbox_id: sandboxId,
      team_id: teamId,
      first_at: at,
      last_at: at + span,
      lines: count,
      characters,
      removed: 0,
      removed_at: null,
    })
    .onConflict((conflict) =>
      conflict.column("sandbox_id").doUpdateSet({
        last_at: sql`case when sandbox_logs.last_at >= ${at} then sandbox_logs.last_at + ${1 + span} else ${at + span} end`,
        lines: sql`sandbox_logs.lines + ${count}`,
        characters: sql`sandbox_logs.characters + ${characters}`,
      }),
    )
    .returning(["last_at", "lines", "characters"])
    .executeTakeFirstOrThrow();
}

/** Removes the oldest lines of the guest, and then those of the platform, until the log is short enough. One line says how many there were. */
async function shorten(tx: Kysely<Database>, owner: LogOwner, bounds: LogBounds): Promise<void> {
  const { sandboxId } = owner;
  const before = await tx.selectFrom("sandbox_logs").where("sandbox_id", "=", sandboxId).selectAll().executeTakeFirstOrThrow();
  if (before.removed_at !== null) {
    await tx.deleteFrom("log_lines").where("sandbox_id", "=", sandboxId).where("at", "=", before.removed_at).execute();
  }
  let removed = before.removed;
  let size = await measure(tx, sandboxId);
  while (size.lines > bounds.maxLines || size.characters > bounds.maxCharacters) {
    const count = Math.max(Math.ceil(size.lines / REMOVED_SHARE), size.lines - bounds.maxLines);
    const oldest = tx
      .selectFrom("log_lines")
      .where("sandbox_id", "=", sandboxId)
      .orderBy("is_guest", "desc")
      .orderBy("at")
      .limit(count)
      .select("at");
    await tx.deleteFrom("log_lines").where("sandbox_id", "=", sandboxId).where("at", "in", oldest).execute();
    removed += count;
    size = await measure(tx, sandboxId);
  }
  const message = `${removed} older lines were removed, because the log of this sandbox was too long`;
  const note: LogLine = { at: before.last_at + 1, level: "warn", logger: "platform", message, fields: {}, isGuest: false };
  await insertLines(tx, owner, [note]);
  await tx
    .updateTable("sandbox_logs")
    .set({ lines: size.lines + 1, characters: size.characters + message.length, removed, removed_at: before.last_at + 1 })
    .where("sandbox_id", "=", sandboxId)
    .execute();
}

/** Lines of a log, and characters of their messages. */
export async function measure(tx: Kysely<Database>, sandboxId: string): Promise<{ readonly lines: number; readonly characters: number }> {
  const row = await tx
    .selectFrom("log_lines")
    .where("sandbox_id", "=", sandboxId)
    .select((eb) => [
      eb.fn.countAll<number>().as("lines"),
      eb.fn.coalesce(eb.fn.sum<number | string>(eb.fn<number>("length", ["message"])), eb.val(0)).as("characters"),
    ])
    .executeTakeFirstOrThrow();
  return { lines: Number(row.lines), characters: Number(row.characters) };
}
