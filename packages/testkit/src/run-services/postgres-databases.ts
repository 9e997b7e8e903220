import { openStore } from "@skerry/store";
import pg from "pg";
import { startPostgres, type TestPostgres } from "../postgres.ts";

const TEMPLATE = "migrated";

/** Databases of one PostgreSQL server, which starts with the first database. */
export class PostgresDatabases implements AsyncDisposable {
  #started: Promise<{ server: TestPostgres; admin: pg.Pool; address: string }> | undefined;
  #count = 0;

  /** With `migrated`, a copy of a database that was migrated once. Otherwise an empty database. */
  async create({ migrated }: { readonly migrated: boolean }): Promise<string> {
    this.#started ??= start();
    const { admin, address } = await this.#started;
    this.#count += 1;
    const name = `test${this.#count}`;
    await admin.query(`create database ${name}${migrated ? ` template ${TEMPLATE}` : ""}`);
    return `${address}/${name}`;
  }

  /** Also closes connections that a test left open. */
  async drop(url: string): Promise<void> {
    const name = new URL(url).pathname.slice(1);
    if (!this.#started || !/^test\d+$/.test(name)) throw new Error(`${url} is no database of this server`);
    await (await this.#started).admin.query(`drop database if exists ${name} with (force)`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#started) return;
    const { server, admin } = await this.#started;
    await admin.end();
    await server.stop();
  }
}

async function start(): Promise<{ server: TestPostgres; admin: pg.Pool; address: string }> {
  const server = await startPostgres();
  try {
    const url = await server.createDatabase(TEMPLATE);
    await (await openStore(url)).close();
    const address = url.slice(0, url.lastIndexOf("/"));
    const admin = new pg.Pool({ connectionString: `${address}/postgres`, max: 4 });
    admin.on("error", () => {});
    return { server, admin, address };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
