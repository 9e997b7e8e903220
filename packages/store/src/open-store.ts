import { type Clock, type Logger, PlatformError } from "@skerry/base";
import { Kysely } from "kysely";
import { AuditRepository } from "./audit/audit.ts";
import { auditedDialect } from "./audit/audited-dialect.ts";
import { BuildFileRepository } from "./build-files.ts";
import { BuildLogRepository } from "./build-logs.ts";
import { BuildRepository } from "./builds.ts";
import { readClusterId } from "./cluster.ts";
import { type DatabaseClock, openDatabaseClock } from "./database-clock.ts";
import { keepFileRoom } from "./dialect/file-room.ts";
import type { DialectName } from "./dialect/json-contains.ts";
import { createPostgresDialect } from "./dialect/postgres.ts";
import { createSqliteDialect } from "./dialect/sqlite.ts";
import { EgressRepository } from "./egress.ts";
import { EventRepository } from "./events/events.ts";
import { WithoutEvents } from "./events/record-event.ts";
import { IdempotencyRepository } from "./idempotency.ts";
import { IdentityRepository } from "./identity.ts";
import { ImageRepository } from "./images.ts";
import { InvitationRepository } from "./invitations.ts";
import { KeyRepository } from "./keys.ts";
import { LimitRepository } from "./limits.ts";
import { LinkRepository } from "./links.ts";
import { MemberRepository } from "./members.ts";
import { migrate, refuseNewer } from "./migrate.ts";
import { NodeRepository } from "./nodes.ts";
import { observedDialect } from "./observe-queries.ts";
import { PlatformCountRepository } from "./platform-counts.ts";
import { ProcessRepository } from "./processes.ts";
import { ProviderUserRepository } from "./provider-users.ts";
import { SandboxLogRepository } from "./sandbox-logs.ts";
import { SandboxMetricRepository } from "./sandbox-metrics.ts";
import { SandboxRepository } from "./sandboxes.ts";
import { SecretRepository } from "./secrets.ts";
import { SnapshotRepository } from "./snapshots.ts";
import type { Database } from "./tables.ts";
import { TagRepository } from "./tags.ts";
import { TeamMetricRepository } from "./team-metrics.ts";
import { TeamRepository } from "./teams.ts";
import { TemplateListRepository } from "./template-lists.ts";
import { TemplateNetworkRepository } from "./template-network.ts";
import { TemplateVisibilityRepository } from "./template-visibility.ts";
import { TemplateRepository } from "./templates.ts";
import { UserRepository } from "./users.ts";
import { VolumeRepository } from "./volumes.ts";
import { WebhookRepository } from "./webhooks/webhooks.ts";

export interface Store extends AsyncDisposable {
  readonly identity: IdentityRepository;
  readonly keys: KeyRepository;
  readonly teams: TeamRepository;
  readonly users: UserRepository;
  readonly providerUsers: ProviderUserRepository;
  readonly members: MemberRepository;
  readonly invitations: InvitationRepository;
  readonly templates: TemplateRepository;
  readonly builds: BuildRepository;
  readonly buildLogs: BuildLogRepository;
  readonly buildFiles: BuildFileRepository;
  readonly templateLists: TemplateListRepository;
  readonly templateVisibility: TemplateVisibilityRepository;
  readonly templateNetwork: TemplateNetworkRepository;
  readonly tags: TagRepository;
  readonly sandboxes: SandboxRepository;
  readonly images: ImageRepository;
  readonly snapshots: SnapshotRepository;
  readonly idempotency: IdempotencyRepository;
  readonly processes: ProcessRepository;
  readonly nodes: NodeRepository;
  readonly secrets: SecretRepository;
  readonly links: LinkRepository;
  readonly sandboxLogs: SandboxLogRepository;
  readonly sandboxMetrics: SandboxMetricRepository;
  readonly teamMetrics: TeamMetricRepository;
  readonly egress: EgressRepository;
  readonly limits: LimitRepository;
  readonly events: EventRepository;
  readonly webhooks: WebhookRepository;
  readonly audit: AuditRepository;
  readonly counts: PlatformCountRepository;
  readonly volumes: VolumeRepository;
  /** The clock for all times that are stored in this database or compared with stored times. */
  readonly clock: DatabaseClock;
  /** The id of the cluster that this database belongs to. */
  readonly clusterId: string;
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly machineClock?: Clock;
  /** False: no events are recorded. */
  readonly events?: boolean;
}

/** Opens `sqlite:<path>` or `postgres://…`, and migrates its tables. */
export async function openStore(url: string, logger?: Logger, options: StoreOptions = {}): Promise<Store> {
  const { name, db: plain } = connect(url, logger);
  const db = options.events === false ? plain.withPlugin(new WithoutEvents()) : plain;
  let clusterId: string;
  let clock: DatabaseClock;
  try {
    await migrate(db);
    if (name === "sqlite") await keepFileRoom(db);
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
    teams: new TeamRepository(db, name),
    users: new UserRepository(db, name),
    providerUsers: new ProviderUserRepository(db, name),
    members: new MemberRepository(db, name),
    invitations: new InvitationRepository(db, name),
    templates: new TemplateRepository(db),
    builds: new BuildRepository(db, name),
    buildLogs: new BuildLogRepository(db),
    buildFiles: new BuildFileRepository(db, name),
    templateLists: new TemplateListRepository(db),
    templateVisibility: new TemplateVisibilityRepository(db),
    templateNetwork: new TemplateNetworkRepository(db),
    tags: new TagRepository(db),
    sandboxes: new SandboxRepository(db, name),
    images: new ImageRepository(db),
    snapshots: new SnapshotRepository(db, name),
    idempotency: new IdempotencyRepository(db),
    processes: new ProcessRepository(db),
    nodes: new NodeRepository(db),
    secrets: new SecretRepository(db, name),
    links: new LinkRepository(db, name),
    sandboxLogs: new SandboxLogRepository(db, name),
    sandboxMetrics: new SandboxMetricRepository(db),
    teamMetrics: new TeamMetricRepository(db),
    egress: new EgressRepository(db),
    limits: new LimitRepository(db, name),
    events: new EventRepository(db, name),
    webhooks: new WebhookRepository(db, name),
    audit: new AuditRepository(db, name),
    counts: new PlatformCountRepository(db),
    volumes: new VolumeRepository(db, name),
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

/** The caller destroys it. */
export function connect(url: string, logger: Logger | undefined): { name: DialectName; db: Kysely<Database> } {
  if (url.startsWith("sqlite:")) {
    const dialect = auditedDialect(observedDialect(createSqliteDialect(url.slice("sqlite:".length))), "sqlite");
    return { name: "sqlite", db: new Kysely({ dialect }) };
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const dialect = auditedDialect(observedDialect(createPostgresDialect(url, logger)), "postgres");
    return { name: "postgres", db: new Kysely({ dialect }) };
  }
  throw new PlatformError("config_invalid", "the database address must be sqlite:<path> or postgres://…");
}
