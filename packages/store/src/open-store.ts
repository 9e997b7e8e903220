import { type Clock, type Logger, PlatformError } from "@skerry/base";
import { Kysely } from "kysely";
import { BuildFileRepository } from "./build-files.ts";
import { BuildLogRepository } from "./build-logs.ts";
import { BuildRepository } from "./builds.ts";
import { readClusterId } from "./cluster.ts";
import { type DatabaseClock, openDatabaseClock } from "./database-clock.ts";
import type { DialectName } from "./dialect/json-contains.ts";
import { createPostgresDialect } from "./dialect/postgres.ts";
import { createSqliteDialect } from "./dialect/sqlite.ts";
import { IdempotencyRepository } from "./idempotency.ts";
import { IdentityRepository } from "./identity.ts";
import { ImageRepository } from "./images.ts";
import { KeyRepository } from "./keys.ts";
import { LinkRepository } from "./links.ts";
import { migrate, refuseNewer } from "./migrate.ts";
import { NodeRepository } from "./nodes.ts";
import { ProcessRepository } from "./processes.ts";
import { SandboxRepository } from "./sandboxes.ts";
import { SecretRepository } from "./secrets.ts";
import { SnapshotRepository } from "./snapshots.ts";
import type { Database } from "./tables.ts";
import { TagRepository } from "./tags.ts";
import { TemplateListRepository } from "./template-lists.ts";
import { TemplateVisibilityRepository } from "./template-visibility.ts";
import { TemplateRepository } from "./templates.ts";

export interface Store extends AsyncDisposable {
  readonly identity: IdentityRepository;
  readonly keys: KeyRepository;
  readonly templates: TemplateRepository;
  readonly builds: BuildRepository;
  readonly buildLogs: BuildLogRepository;
  readonly buildFiles: BuildFileRepository;
  readonly templateLists: TemplateListRepository;
  readonly templateVisibility: TemplateVisibilityRepository;
  readonly tags: TagRepository;
  readonly sandboxes: SandboxRepository;
  readonly images: ImageRepository;
  readonly snapshots: SnapshotRepository;
  readonly idempotency: IdempotencyRepository;
  readonly processes: ProcessRepository;
  readonly nodes: NodeRepository;
  readonly secrets: SecretRepository;
  readonly links: LinkRepository;
  /** The clock for all times that are stored in this database or compared with stored times. */
  readonly clock: DatabaseClock;
  /** The id of the cluster that this database belongs to. */
  readonly clusterId: string;
  close(): Promise<void>;
}

/** Opens `sqlite:<path>` or `postgres://…`, and migrates its tables. */
export async function openStore(url: string, logger?: Logger, options: { machineClock?: Clock } = {}): Promise<Store> {
  const { name, db } = connect(url, logger);
  let clusterId: string;
  let clock: DatabaseClock;
  try {
    await migrate(db);
    clusterId = await readClusterId(db);
    clock = await openDatabaseClock(db, name, { logger, machine: options.machineClock });
  } catch (error) {
    await db.destroy();
    throw error;
  }
  const close = () => db.destroy();
  return {
    identity: new IdentityRepository(db),
    keys: new KeyRepository(db),
    templates: new TemplateRepository(db),
    builds: new BuildRepository(db, name),
    buildLogs: new BuildLogRepository(db),
    buildFiles: new BuildFileRepository(db, name),
    templateLists: new TemplateListRepository(db),
    templateVisibility: new TemplateVisibilityRepository(db),
    tags: new TagRepository(db),
    sandboxes: new SandboxRepository(db, name),
    images: new ImageRepository(db),
    snapshots: new SnapshotRepository(db, name),
    idempotency: new IdempotencyRepository(db),
    processes: new ProcessRepository(db),
    nodes: new NodeRepository(db),
    secrets: new SecretRepository(db, name),
    links: new LinkRepository(db, name),
    clock,
    clusterId,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Throws PlatformError("store_migration_failed") when a newer version has changed the tables. Changes nothing. */
export async function refuseNewerDatabase(url: string, logger?: Logger): Promise<void> {
  const { db } = connect(url, logger);
  try {
    await refuseNewer(db);
  } finally {
    await db.destroy();
  }
}

function connect(url: string, logger: Logger | undefined): { name: DialectName; db: Kysely<Database> } {
  if (url.startsWith("sqlite:")) {
    return { name: "sqlite", db: new Kysely({ dialect: createSqliteDialect(url.slice("sqlite:".length)) }) };
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    return { name: "postgres", db: new Kysely({ dialect: createPostgresDialect(url, logger) }) };
  }
  throw new PlatformError("config_invalid", "the database address must be sqlite:<path> or postgres://…");
}
