// Writes the begun line of a request's audit log in the first transaction of the request that changes anything, so that no change exists
// without its line, whatever ends in between. This is done below all repositories, so that none of them can forget it. Requests that only
// read cost nothing more.

import { type BegunAuditLine, currentRequest } from "@skerry/base";
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from "kysely";
import type { DialectName } from "../dialect/json-contains.ts";

const WRITES: ReadonlySet<string> = new Set(["InsertQueryNode", "UpdateQueryNode", "DeleteQueryNode"]);

const INSERT: Readonly<Record<DialectName, string>> = {
  sqlite: "insert into audit_pending (request_id, run, facts) values (?, ?, ?) on conflict do nothing",
  postgres: "insert into audit_pending (request_id, run, facts) values ($1, $2, $3) on conflict do nothing",
};

export function auditedDialect(dialect: Dialect, name: DialectName): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => new AuditedDriver(dialect.createDriver(), INSERT[name]),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class AuditedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  readonly #driver: AuditedDriver;
  isInTransaction = false;
  hasWritten = false;
  constructor(inner: DatabaseConnection, driver: AuditedDriver) {
    this.inner = inner;
    this.#driver = driver;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (!WRITES.has(query.query.kind)) return await this.inner.executeQuery<R>(query);
    if (this.isInTransaction) {
      this.hasWritten = true;
      return await this.inner.executeQuery<R>(query);
    }
    return await this.#driver.executeAlone<R>(this.inner, query);
  }

  streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    return this.inner.streamQuery<R>(query, chunkSize);
  }
}

class AuditedDriver implements Driver {
  readonly #inner: Driver;
  readonly #insert: string;
  /** The connections of a pool come again. */
  readonly #connections = new WeakMap<DatabaseConnection, AuditedConnection>();
  constructor(inner: Driver, insert: string) {
    this.#inner = inner;
    this.#insert = insert;
  }

  async init(): Promise<void> {
    await this.#inner.init();
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const inner = await this.#inner.acquireConnection();
    let connection = this.#connections.get(inner);
    if (!connection) {
      connection = new AuditedConnection(inner, this);
      this.#connections.set(inner, connection);
    }
    connection.isInTransaction = false;
    return connection;
  }

  async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    const audited = connection as AuditedConnection;
    await this.#inner.beginTransaction(audited.inner, settings);
    audited.isInTransaction = true;
    audited.hasWritten = false;
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    const audited = connection as AuditedConnection;
    const line = audited.hasWritten ? unwritten() : undefined;
    if (line) await this.#write(audited.inner, line);
    await this.#inner.commitTransaction(audited.inner);
    audited.isInTransaction = false;
    if (line) line.isWritten = true;
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    const audited = connection as AuditedConnection;
    audited.isInTransaction = false;
    await this.#inner.rollbackTransaction(audited.inner);
  }

  async savepoint(connection: DatabaseConnection, name: string, compile: QueryCompiler["compileQuery"]): Promise<void> {
    await this.#inner.savepoint?.((connection as AuditedConnection).inner, name, compile);
  }

  async rollbackToSavepoint(connection: DatabaseConnection, name: string, compile: QueryCompiler["compileQuery"]): Promise<void> {
    await this.#inner.rollbackToSavepoint?.((connection as AuditedConnection).inner, name, compile);
  }

  async releaseSavepoint(connection: DatabaseConnection, name: string, compile: QueryCompiler["compileQuery"]): Promise<void> {
    await this.#inner.releaseSavepoint?.((connection as AuditedConnection).inner, name, compile);
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    await this.#inner.releaseConnection((connection as AuditedConnection).inner);
  }

  async destroy(): Promise<void> {
    await this.#inner.destroy();
  }

  /** A single statement that changes something. With an unwritten line, both are one transaction. */
  async executeAlone<R>(inner: DatabaseConnection, query: CompiledQuery): Promise<QueryResult<R>> {
    const line = unwritten();
    if (!line) return await inner.executeQuery<R>(query);
    await this.#inner.beginTransaction(inner, {});
    let result: QueryResult<R>;
    try {
      result = await inner.executeQuery<R>(query);
      await this.#write(inner, line);
      await this.#inner.commitTransaction(inner);
    } catch (error) {
      // What failed is what the caller learns of.
      await this.#inner.rollbackTransaction(inner).catch(() => {});
      throw error;
    }
    line.isWritten = true;
    return result;
  }

  async #write(inner: DatabaseConnection, line: BegunAuditLine): Promise<void> {
    await inner.executeQuery(CompiledQuery.raw(this.#insert, [line.requestId, line.run, line.text()]));
  }
}

function unwritten(): BegunAuditLine | undefined {
  const line = currentRequest()?.audit;
  return line && !line.isWritten && !line.isOver ? line : undefined;
}
