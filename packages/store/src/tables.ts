// The tables as Kysely sees them. Times are milliseconds since the epoch, truth values are 0 or 1, and lists are JSON text, because these
// types mean the same on both databases.

import type { Generated } from "kysely";
import type { EgressTables } from "./egress-tables.ts";
import type { VolumeTable } from "./volume-table.ts";

export interface Database extends EgressTables {
  teams: TeamTable;
  users: { id: string; name: string; created_at: number; email: string | null };
  provider_users: { issuer: string; subject: string; user_id: string; seen_issued_at: number };
  team_members: { team_id: string; user_id: string; is_default: number; role: string; created_at: number };
  invitations: InvitationTable;
  api_keys: ApiKeyTable;
  access_tokens: CredentialTable & { user_id: string };
  templates: TemplateTable;
  template_aliases: { namespace: string; alias: string; template_id: string; created_at: number };
  builds: BuildTable;
  tag_assignments: { template_id: string; tag: string; position: number; build_id: string; assigned_at: number };
  build_logs: BuildLogTable;
  build_files: BuildFileTable;
  sandboxes: SandboxTable;
  sandbox_events: SandboxEventTable;
  images: ImageTable;
  idempotency_keys: IdempotencyTable;
  secrets: SecretTable;
  sandbox_links: LinkTable;
  event_outbox: EventOutboxTable;
  events: EventTable;
  event_counters: { scope: string; last: number };
  webhooks: WebhookTable;
  webhook_deliveries: WebhookDeliveryTable;
  node_statuses: { node_id: string; status: string; changed_at: number };
  tiers: { name: string; limits: string; updated_at: number };
  team_limits: { team_id: string; tier: string | null; overrides: string; updated_at: number };
  processes: { id: string; beat: number; started_at: number };
  sandbox_metrics: SandboxMetricTable;
  sandbox_logs: SandboxLogTable;
  log_lines: LogLineTable;
  log_sources: { sandbox_id: string; source: string; number: number };
  team_metrics: TeamMetricTable;
  cluster: { only: number; id: string };
  audit_log: AuditTable;
  audit_pending: { request_id: string; run: string; facts: string };
  audit_counter: { last: number; last_at: number };
  volumes: VolumeTable;
  volume_mounts: { sandbox_id: string; path: string; volume_id: string };
}

export interface TeamTable {
  id: string;
  slug: string;
  name: string;
  created_at: number;
  deleted_at: number | null;
  standing: Generated<string>;
  standing_reason: string | null;
}

export interface CredentialTable {
  id: string;
  name: string;
  /** SHA-256 in hex. The clear value is never stored. */
  hash: string;
  /** The part that may be shown: the length, and the first and last characters after the prefix. */
  mask_length: number;
  mask_prefix: string;
  mask_suffix: string;
  created_at: number;
  last_used_at: number | null;
  /** From this time on it is refused. */
  expires_at: number | null;
  /** It comes from the secrets file of the platform. */
  is_seeded: number;
  /** Set only for a deleted one of the secrets file, which the next start would add again otherwise. All others are removed. */
  deleted_at: number | null;
  /** JSON, or null for everything that its owner may do. */
  scopes: string | null;
}

export interface ApiKeyTable extends CredentialTable {
  team_id: string;
  created_by: string | null;
  /** JSON, or null for all sandboxes of the team. */
  sandbox_metadata: string | null;
  /** The member who signs in with it. It may do no more than the member, and goes with the membership. */
  member_id: string | null;
}

export interface InvitationTable {
  id: string;
  team_id: string;
  email: string | null;
  role: string;
  /** SHA-256 in hex. The token itself is never stored. */
  token_hash: string;
  created_by: string | null;
  created_at: number;
  expires_at: number;
}

export interface TemplateTable {
  id: string;
  team_id: string;
  is_public: number;
  created_at: number;
  updated_at: number;
  last_spawned_at: number | null;
  spawn_count: number;
  kind: string;
  deleted_at: number | null;
  is_default: number;
  description: string | null;
  network_limits: string | null;
}

export interface BuildTable {
  id: string;
  template_id: string;
  status: string;
  cpu_count: number;
  memory_mb: number;
  disk_size_mb: number;
  layers: string;
  default_user: string;
  default_workdir: string;
  agent_version: string;
  created_at: number;
  updated_at: number;
  finished_at: number | null;
  image_id: string | null;
  image_has_memory: number | null;
  node_id: string | null;
  source_sandbox_id: string | null;
  request: string | null;
  context: string | null;
  start: string | null;
  reason: string | null;
  owner: string | null;
  builder_node_id: string | null;
  started_at: number | null;
  began_at: number | null;
  layers_node_id: string | null;
  attempts: number;
  events_read: number;
  is_legacy: number;
  /** Of a snapshot: JSON, or null for none. */
  volume_mounts: string | null;
}

export interface BuildLogTable {
  build_id: string;
  number: number;
  at: number;
  level: number;
  step: string;
  message: string;
}

export interface BuildFileTable {
  team_id: string;
  hash: string;
  blob: string;
  size_bytes: number;
  created_at: number;
  last_used_at: number;
}

export interface SandboxTable {
  id: string;
  team_id: string;
  template_id: string;
  build_id: string;
  alias: string | null;
  state: string;
  state_changed_at: number;
  node_id: string;
  node_url: string;
  owner: string;
  runtime: string | null;
  agent_version: string | null;
  created_at: number;
  started_at: number | null;
  end_at: number | null;
  metadata: string | null;
  cpu_count: number;
  memory_mb: number;
  disk_size_mb: number;
  options: string;
  auto_pause: number;
  auto_resume: number;
  ended_at: number | null;
  end_reason: string | null;
  end_actor: string | null;
  version: number;
  listed: string | null;
  image_id: string | null;
  image_has_memory: number | null;
  agent_unresponsive: number | null;
  paused_at: number | null;
  auto_pause_memory: number;
  timeout_ms: number;
  expire_not_before: number | null;
  pause_reason: string | null;
  resume_ms: number | null;
  suspended_by: string | null;
  keep_until: number | null;
  options_change: string | null;
  /** JSON, or null for none. */
  volume_mounts: string | null;
}

export interface SandboxEventTable {
  sandbox_id: string;
  version: number;
  at: number;
  from_state: string | null;
  to_state: string;
  event: string;
  reason: string | null;
  actor: string;
}

export interface ImageTable {
  id: string;
  team_id: string;
  node_id: string;
  sandbox_id: string;
  kind: string;
  state: string;
  state_changed_at: number;
  owner: string;
  has_memory: number;
  size_bytes: number;
  created_at: number;
}

export interface IdempotencyTable {
  team_id: string;
  key: string;
  fingerprint: string;
  owner: string;
  created_at: number;
  subjects: string;
  status: number | null;
  body: string | null;
}

export interface SecretTable {
  id: string;
  team_id: string;
  name: string;
  version: number;
  metadata: string;
  /** The value, encrypted. */
  sealed: string;
  key_id: string;
  created_at: number;
  updated_at: number;
}

export interface SandboxLogTable {
  sandbox_id: string;
  team_id: string;
  first_at: number;
  last_at: number;
  lines: number;
  characters: number;
  removed: number;
  removed_at: number | null;
}

export interface LogLineTable {
  sandbox_id: string;
  at: number;
  level: number;
  is_guest: number;
  logger: string;
  message: string;
  fields: string;
}

export interface SandboxMetricTable {
  sandbox_id: string;
  at: number;
  step_ms: number;
  cpu_count: number;
  /** Hundredths of a percent. */
  cpu_used: number;
  memory_used: number;
  memory_total: number;
  memory_cache: number;
  disk_used: number;
  disk_total: number;
}

export interface TeamMetricTable {
  team_id: string;
  at: number;
  step_ms: number;
  concurrent: number;
  starts: number;
}

export interface LinkTable {
  id: string;
  sandbox_id: string;
  port: number;
  path: string;
  /** JSON, or null for all methods. */
  methods: string | null;
  /** SHA-256 in hex. The token itself is never stored. */
  token_hash: string;
  created_at: number;
  expires_at: number;
}

interface EventColumns {
  /** Stays the same in every delivery. */
  id: string;
  team_id: string;
  type: string;
  /** The id of what changed. */
  subject_id: string;
  at: number;
  actor: string;
  reason: string | null;
  request_id: string | null;
  /** JSON. */
  facts: string;
}

/** Events as the transactions of their changes wrote them, without a number yet. */
export interface EventOutboxTable extends EventColumns {
  position: Generated<number>;
}

export interface EventTable extends EventColumns {
  /** Counts the events of all teams. */
  number: number;
  /** Counts the events of the team, without a gap. */
  sequence: number;
}

export interface WebhookTable {
  id: string;
  team_id: string;
  name: string;
  url: string;
  /** JSON, or null for all types. */
  types: string | null;
  enabled: number;
  disabled_reason: string | null;
  /** The secret that signs, encrypted. */
  sealed: string;
  key_id: string;
  cursor: number;
  failures: number;
  failing_since: number | null;
  retry_at: number | null;
  last_error: string | null;
  last_delivered_at: number | null;
  skipped: number;
  /** The API process that delivers it, until `lease_until`. */
  owner: string | null;
  lease_until: number;
  created_at: number;
  updated_at: number;
}

export interface WebhookDeliveryTable {
  webhook_id: string;
  sequence: number;
  state: string;
  attempts: number;
  first_at: number;
  next_at: number;
  error: string;
}

export interface AuditTable {
  number: number;
  at: number;
  request_id: string | null;
  operation: string | null;
  team_id: string | null;
  actor: string;
  user_id: string | null;
  credential_id: string | null;
  credential_mask: string | null;
  address: string | null;
  subject_id: string | null;
  outcome: string;
  status: number | null;
  reason: string | null;
  duration_ms: number | null;
  made_ids: string | null;
  count: number;
}
