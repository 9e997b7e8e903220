import { chmod, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPostgresDatabase } from "@skerry/testkit/run-services";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createPostgresDialect } from "../src/dialect/postgres.ts";
import { createSqliteDialect } from "../src/dialect/sqlite.ts";
import { openStore, refuseNewerDatabase, type Store } from "../src/index.ts";
import { MIGRATIONS } from "../src/migrations/index.ts";
import { sandboxRow } from "../src/sandbox.ts";
import type { Database } from "../src/tables.ts";
import { auditContract } from "./audit-contract.ts";
import { egressContract } from "./egress-contract.ts";
import { eventContract } from "./event-contract.ts";
import { imageContract } from "./image-contract.ts";
import { limitContract } from "./limit-contract.ts";
import { logContract } from "./log-contract.ts";
import { metricContract } from "./metric-contract.ts";
import { NOT_STARTED, sandboxContract } from "./sandbox-contract.ts";
import { identityContract, newSandbox, templateContract } from "./store-contract.ts";
import { templateNameContract } from "./template-name-contract.ts";
import { volumeContract } from "./volume-contract.ts";

describe.each(["sqlite", "postgres"] as const)("the store on %s", (kind) => {
  let folder: string;
  let url: string;
  let count = 0;
  let opened: Store[] = [];
  let databases: AsyncDisposableStack;
  const newDatabase = async ({ migrated }: { migrated: boolean }) => {
    count += 1;
    if (kind === "sqlite") return `sqlite:${join(folder, `${count}.db`)}`;
    return databases.use(await createPostgresDatabase({ migrated })).url;
  };
  const open = async () => {
    const store = await openStore(url);
    opened.push(store);
    return store;
  };
  const context = {
    store: () => {
      const [first] = opened;
      if (!first) throw new Error("the store is not open");
      return first;
    },
    another: open,
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "skerry-store-"));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    databases = new AsyncDisposableStack();
    url = await newDatabase({ migrated: true });
    opened = [];
    await open();
  });
  afterEach(async () => {
    await Promise.all(opened.map((store) => store.close()));
    await databases.disposeAsync();
  });

  describe("identity", () => identityContract(context));
  describe("templates", () => templateContract(context));
  describe("names, visibility and tags", () => templateNameContract(context));
  describe("sandboxes", () => sandboxContract(context));
  describe("logs of sandboxes", () => logContract(context));
  describe("egress logs", () => egressContract(context));
  describe("metrics", () => metricContract(context));
  describe("images, snapshots and keys", () => imageContract(context));
  describe("limits", () => limitContract(context));
  describe("volumes", () => volumeContract(context));
  describe("events", () => eventContract(context));
  describe("the audit log", () => auditContract(context));

  it("refuses changes of lines of the audit log", async () => {
    const dialect = kind === "postgres" ? createPostgresDialect(url, undefined) : createSqliteDialect(url.slice("sqlite:".length));
    await using db = new Kysely<Database>({ dialect });
    const { last } = await db.selectFrom("audit_counter").select("last").executeTakeFirstOrThrow();
    expect(last).toBe(0);
    await sql`insert into audit_log (number, at, actor, outcome, count) values (1, 1, 'admin', 'done', 1)`.execute(db);
    await expect(db.updateTable("audit_log").set({ outcome: "failed" }).execute()).rejects.toThrow(
      /lines of the audit log are not changed/,
    );
  });

  it("is refused, and left as it is, when a newer version has changed its tables", async () => {
    const dialect = kind === "postgres" ? createPostgresDialect(url, undefined) : createSqliteDialect(url.slice("sqlite:".length));
    const db = new Kysely({ dialect });
    await sql`insert into kysely_migration (name, timestamp) values ('999-later', '2030-01-01')`.execute(db);
    for (const use of [open, () => refuseNewerDatabase(url)]) {
      await expect(use()).rejects.toMatchObject({
        code: "store_migration_failed",
        message: expect.stringMatching(/newer version.*999-later/),
      });
    }
    await sql`delete from kysely_migration where name = '999-later'`.execute(db);
    await db.destroy();
    await refuseNewerDatabase(url);
    await open();
  });

  it("converts the rows of a database from before sandboxes had options", async () => {
    url = await newDatabase({ migrated: false });
    const dialect = kind === "postgres" ? createPostgresDialect(url, undefined) : createSqliteDialect(url.slice("sqlite:".length));
    const db = new Kysely<Database>({ dialect });
    const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });
    expect((await migrator.migrateTo("004-kept")).error).toBeUndefined();
    await db.insertInto("teams").values({ id: "t", slug: "t", name: "t", created_at: 1 }).execute();
    const before = { "i-denied": 0, "i-allowed": 1, "i-unset": null };
    for (const [id, allowed] of Object.entries(before)) {
      const {
        options: _options,
        options_change: _change,
        resume_ms: _rest,
        suspended_by: _by,
        volume_mounts: _mounts,
        ...row
      } = sandboxRow(newSandbox("t", { id }));
      await db
        .insertInto("sandboxes")
        .values({ ...row, allow_internet_access: allowed } as never)
        .execute();
    }
    await db.destroy();
    const store = await open();
    const optionsOf = async (id: string) => (await store.sandboxes.find(id))?.options;
    expect(await optionsOf("i-denied")).toEqual({ allowInternetAccess: false });
    expect(await optionsOf("i-allowed")).toEqual({ allowInternetAccess: true });
    expect(await optionsOf("i-unset")).toEqual({});
    expect(await store.sandboxes.find("i-denied")).toEqual({
      ...newSandbox("t", { id: "i-denied", options: { allowInternetAccess: false } }),
      ...NOT_STARTED,
    });
  });

  it("is opened for the first time by several at once", async () => {
    url = await newDatabase({ migrated: false });
    const stores = await Promise.all([open(), open(), open(), open()]);
    for (const store of stores) expect(await store.sandboxes.countByNode()).toEqual(new Map());
    expect(new Set(stores.map((store) => store.clusterId)).size).toBe(1);
  });
});

it("keeps an SQLite database to its owner, also one from before that others could read", async () => {
  const folder = await mkdtemp(join(tmpdir(), "skerry-store-"));
  const path = join(folder, "x.db");
  const files = [path, `${path}-wal`, `${path}-shm`];
  const modes = () => Promise.all(files.map(async (file) => (await stat(file)).mode & 0o777));
  try {
    await using _first = await openStore(`sqlite:${path}`);
    expect(await modes()).toEqual([0o600, 0o600, 0o600]);
    for (const file of files) await chmod(file, 0o644);
    await using _second = await openStore(`sqlite:${path}`);
    expect(await modes()).toEqual([0o600, 0o600, 0o600]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

it("refuses an address of another kind", async () => {
  await expect(openStore("mysql://x")).rejects.toMatchObject({ code: "config_invalid" });
});
