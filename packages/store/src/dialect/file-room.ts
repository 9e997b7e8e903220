import { type Kysely, sql } from "kysely";

/** Pages that are kept free. On a full disk, they hold the journal and the events of thousands of sandboxes that are ended to make room. */
const FREE_PAGES = 512;
const PAGE_BYTES = 4096;

/**
 * Keeps free pages in the file of a database, so that rows can be added on a full disk. Without them, the log could not be written back to the
 * file, and would fill its own room. Without room for them the database works until the disk is full.
 */
export async function keepFileRoom<T>(db: Kysely<T>): Promise<void> {
  const { rows } = await sql<{ freelist_count: number }>`pragma freelist_count`.execute(db);
  if ((rows[0]?.freelist_count ?? 0) >= FREE_PAGES / 2) return;
  try {
    await sql`create table if not exists room (bytes blob)`.execute(db);
    await sql`insert into room values (zeroblob(${FREE_PAGES * PAGE_BYTES}))`.execute(db);
    // Pages that were never in the file would have no blocks.
    await sql`pragma wal_checkpoint(passive)`.execute(db);
  } catch {
    // The disk is full already.
  } finally {
    await sql`drop table if exists room`.execute(db).catch(() => {});
  }
}
