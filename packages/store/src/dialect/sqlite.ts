// A Kysely dialect for the SQLite of Node.js. The process has one connection, for which Kysely queues the queries. WAL with synchronous=FULL:
// acknowledged transactions are on disk, and `kill -9` loses nothing.

import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { asError, PlatformError } from "@skerry/base";
import { DISK_FULL_MESSAGE } from "@skerry/wire";
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { keepWalRoom } from "./wal-room.ts";

const STATEMENTS_KEPT = 200;
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
/** There was no disk space for the index of the write-ahead log. */
const SQLITE_IOERR_SHMSIZE = 4874;
const BUSY_LIMIT_MS = 15_000;

export function createSqliteDialect(path: string): Dialect {
  return {
    createAdapter: () => new TransactionalDdlAdapter(),
    createDriver: () => new NodeSqliteDriver(path),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** SQLite supports DDL inside transactions. A failed migration must leave nothing behind. */
class TransactionalDdlAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class NodeSqliteDriver implements Driver {
  readonly #path: string;
  #connection: NodeSqliteConnection | undefined;
  constructor(path: string) {
    this.#path = path;
  }

  async init(): Promise<void> {
    if (this.#path !== ":memory:") keepToOwner(this.#path);
    const db = new DatabaseSync(this.#path, { timeout: 20, enableForeignKeyConstraints: true });
    await retryWhileBusy(() => db.exec("pragma journal_mode = wal; pragma synchronous = full;"));
    // The first read creates the log.
    await retryWhileBusy(() => db.exec("select count(*) from sqlite_master"));
    if (this.#path !== ":memory:") await keepWalRoom(this.#path);
    this.#connection = new NodeSqliteConnection(db);
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    if (!this.#connection) throw new Error("the database is not open");
    return this.#connection;
  }

  // Immediate: otherwise a transaction that reads first and writes later would fail at once when another process has written in between.
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  /** On a full disk, SQLite may have rolled back already. */
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#connection?.isInTransaction) await connection.executeQuery(CompiledQuery.raw("rollback"));
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

/**
 * Makes the database readable for its owner only. It contains hashes and no secrets, but also the state of all teams. New companion files
 * (-wal, -shm) get the mode of the database. Files of earlier versions or from a backup may have any mode.
 */
function keepToOwner(path: string): void {
  closeSync(openSync(path, "a", 0o600));
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    try {
      chmodSync(file, 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return retryWhileBusy(() => this.#execute<R>(query));
  }

  get isInTransaction(): boolean {
    return this.#db.isTransaction;
  }

  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("streaming queries are not used here");
  }

  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  #execute<R>(query: CompiledQuery): QueryResult<R> {
    const statement = this.#prepare(query.sql);
    const parameters = query.parameters as readonly SQLInputValue[];
    if (statement.columns().length > 0) return { rows: statement.all(...parameters) as R[] };
    const { changes, lastInsertRowid } = statement.run(...parameters);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  #prepare(sql: string): StatementSync {
    const kept = this.#statements.get(sql);
    if (kept) return kept;
    const statement = this.#db.prepare(sql);
    if (this.#statements.size >= STATEMENTS_KEPT) {
      const oldest = this.#statements.keys().next().value;
      if (oldest !== undefined) this.#statements.delete(oldest);
    }
    this.#statements.set(sql, statement);
    return statement;
  }
}

/** Repeats a statement while another process writes. SQLite's own wait blocks the whole process, so it is kept short. */
async function retryWhileBusy<R>(work: () => R): Promise<R> {
  const deadline = Date.now() + BUSY_LIMIT_MS;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (isFull(error)) throw diskFull(error);
      if (!isBusy(error) || Date.now() > deadline) throw error;
    }
    await sleep(5);
  }
}

/** The error for a full disk. No statement was executed in part, so the caller may try again. */
function diskFull(cause: unknown): PlatformError {
  return new PlatformError("capacity_unavailable", "the disk of the database is full", {
    publicMessage: DISK_FULL_MESSAGE,
    cause: asError(cause),
  });
}

function isFull(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode;
  return code !== undefined && ((code & 0xff) === SQLITE_FULL || code === SQLITE_IOERR_SHMSIZE);
}

function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode;
  return code !== undefined && (code & 0xff) === SQLITE_BUSY;
}
