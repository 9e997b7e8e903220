import type { Kysely, Selectable } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { Database, LinkTable } from "./tables.ts";

/** A link to a port of a sandbox. */
export interface StoredLink {
  readonly id: string;
  readonly sandboxId: string;
  readonly port: number;
  /** The page that the link opens. */
  readonly path: string;
  /** Undefined: all methods. */
  readonly methods: readonly string[] | undefined;
  /** SHA-256 of the token, in hex. */
  readonly tokenHash: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** The links to ports of sandboxes. An expired link is as good as none, and the next new link of its sandbox removes it. */
export class LinkRepository {
  readonly #db: Kysely<Database>;
  readonly #dialect: DialectName;
  constructor(db: Kysely<Database>, dialect: DialectName) {
    this.#db = db;
    this.#dialect = dialect;
  }

  /** Adds a link unless its sandbox has `max` links, or ends. The lock makes two parallel requests count each other. */
  async add(link: StoredLink, { teamId, max }: { readonly teamId: string; readonly max: number }): Promise<"added" | "full" | "ended"> {
    return await this.#db.transaction().execute(async (tx) => {
      await lockTeam(tx, this.#dialect, teamId);
      // The row is locked, so that the sandbox doesn't end before the link is there for its end to remove.
      const query = tx.selectFrom("sandboxes").where("id", "=", link.sandboxId).where("team_id", "=", teamId).select("state");
      const sandbox = await (this.#dialect === "postgres" ? query.forNoKeyUpdate() : query).executeTakeFirst();
      if (!sandbox || sandbox.state === "killing" || sandbox.state === "ended") return "ended";
      const links = () => tx.selectFrom("sandbox_links").where("sandbox_id", "=", link.sandboxId);
      await tx.deleteFrom("sandbox_links").where("sandbox_id", "=", link.sandboxId).where("expires_at", "<=", link.createdAt).execute();
      const { count } = await links()
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      if (Number(count) >= max) return "full";
      await tx.insertInto("sandbox_links").values(rowOf(link)).execute();
      return "added";
    });
  }

  async find(id: string): Promise<StoredLink | undefined> {
    const row = await this.#db.selectFrom("sandbox_links").where("id", "=", id).selectAll().executeTakeFirst();
    return row && linkFrom(row);
  }

  /** The links of a sandbox that have not expired, oldest first. */
  async list(sandboxId: string, now: number): Promise<readonly StoredLink[]> {
    const rows = await this.#db
      .selectFrom("sandbox_links")
      .where("sandbox_id", "=", sandboxId)
      .where("expires_at", ">", now)
      .selectAll()
      .orderBy("created_at")
      .orderBy("id")
      .execute();
    return rows.map(linkFrom);
  }

  /** Returns whether the sandbox had such a link. */
  async remove(sandboxId: string, id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("sandbox_links")
      .where("id", "=", id)
      .where("sandbox_id", "=", sandboxId)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }
}

function rowOf(link: StoredLink): Selectable<LinkTable> {
  return {
    id: link.id,
    sandbox_id: link.sandboxId,
    port: link.port,
    path: link.path,
    methods: link.methods === undefined ? null : JSON.stringify(link.methods),
    token_hash: link.tokenHash,
    created_at: link.createdAt,
    expires_at: link.expiresAt,
  };
}

function linkFrom(row: Selectable<LinkTable>): StoredLink {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    port: row.port,
    path: row.path,
    methods: row.methods === null ? undefined : (JSON.parse(row.methods) as string[]),
    tokenHash: row.token_hash,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
