import type { AccountService } from "../accounts/account-service.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { BuildService } from "../builds/build-service.ts";
import type { BuildUploads } from "../builds/uploads.ts";
import type { EgressService } from "../egress/egress-service.ts";
import type { EventService } from "../events/event-service.ts";
import type { IdempotentRequests } from "../idempotency/idempotent-requests.ts";
import type { KeyService } from "../keys/key-service.ts";
import type { LinkService } from "../links/link-service.ts";
import type { LogService } from "../logs/log-service.ts";
import type { MetricsService } from "../metrics/metrics-service.ts";
import type { NodeService } from "../nodes/node-service.ts";
import type { SandboxService } from "../sandboxes/service.ts";
import type { OutgoingProxies } from "../secrets/outgoing-proxies.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import type { SnapshotService } from "../snapshots/snapshot-service.ts";
import type { StatusService } from "../status/status-service.ts";
import type { LimitService } from "../teams/limit-service.ts";
import type { MemberService } from "../teams/member-service.ts";
import type { StandingService } from "../teams/standing-service.ts";
import type { TeamService } from "../teams/team-service.ts";
import type { TagService } from "../templates/tag-service.ts";
import type { TemplateService } from "../templates/template-service.ts";
import type { VolumeService } from "../volumes/volume-service.ts";
import type { WebhookService } from "../webhooks/webhook-service.ts";
import type { Encoding } from "./output/encode-sandbox.ts";

/** What handlers work with: one service per noun. A handler reads the request, calls one service method, and encodes the result. */
export interface ApiServices {
  readonly sandboxes: SandboxService;
  readonly snapshots: SnapshotService;
  readonly templates: TemplateService;
  readonly builds: BuildService;
  readonly uploads: BuildUploads;
  readonly tags: TagService;
  readonly teams: TeamService;
  readonly members: MemberService;
  readonly accounts: AccountService;
  readonly keys: KeyService;
  readonly limits: LimitService;
  readonly standings: StandingService;
  readonly secrets: SecretService;
  readonly proxies: OutgoingProxies;
  readonly links: LinkService;
  readonly events: EventService;
  readonly audit: AuditService;
  readonly status: StatusService;
  readonly webhooks: WebhookService;
  readonly nodes: NodeService;
  readonly metrics: MetricsService;
  readonly logs: LogService;
  readonly egress: EgressService;
  readonly volumes: VolumeService;
  /** The id of the cluster of this database. */
  readonly clusterId: string;
  readonly idempotency: IdempotentRequests;
  readonly encoding: Encoding;
}
