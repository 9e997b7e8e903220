export type { LogOwner } from "./append-log.ts";
export { type AuditFilter, type AuditPage, type AuditPart, AuditRepository } from "./audit/audit.ts";
export type { AuditFacts, AuditLine, AuditOutcome, NewAuditLine } from "./audit/audit-line.ts";
export type { BuildEntry, BuildJob, BuildOutcome, BuildReason, BuildRequest, BuildRequestStep, NewBuild } from "./build.ts";
export { type BuildFile, BuildFileRepository } from "./build-files.ts";
export { type BuildLogLevel, type BuildLogLine, BuildLogRepository, type BuildLogWindow, LOG_LEVELS } from "./build-logs.ts";
export { type BuildRegistration, BuildRepository, type BuildStartRequest, type RegisteredBuild, type StartedBuild } from "./builds.ts";
export { isDatabaseAway } from "./database-away.ts";
export { copyDatabase, type DatabaseKind, databaseKindOf, fillPostgres } from "./dialect/copy-database.ts";
export { type EgressBatch, type EgressCounts, type EgressLine, EgressRepository, type EgressWindow } from "./egress.ts";
export type { EventFacts, SandboxFacts, StoredEvent } from "./events/event.ts";
export { type EventFilter, type EventPage, type EventPosition, isByTime, positionOf } from "./events/event-list.ts";
export { EVENT_TYPES, type EventType, isEventType } from "./events/event-type.ts";
export { EventRepository, type Retention } from "./events/events.ts";
export { IdempotencyRepository, type KeyRecord, type NewKeyRecord } from "./idempotency.ts";
export {
  type Credential,
  type CredentialMask,
  IdentityRepository,
  type KeyOwner,
  type Membership,
  type NewApiKey,
  ROLES,
  type Role,
  type Team,
  type TeamStanding,
  type TokenUser,
} from "./identity.ts";
export type { Image, ImageKind, ImageState, NewImage } from "./image.ts";
export { ImageRepository } from "./images.ts";
export { type Acceptance, type Invitation, InvitationRepository } from "./invitations.ts";
export { KeyRepository, type ListedKey, type ListedToken, type OwnedKey } from "./keys.ts";
export type { SandboxLimits, SandboxSize } from "./limit-checks.ts";
export { LIMIT_NAMES, type LimitName, type LimitValues } from "./limit-names.ts";
export { LimitRepository, type TeamLimitEntry, type TeamUse, type Tier } from "./limits.ts";
export { LinkRepository, type StoredLink } from "./links.ts";
export type { LogLine } from "./log-line.ts";
export { type Member, type MemberChange, type MemberId, MemberRepository } from "./members.ts";
export { METRIC_STEPS, metricStepOf } from "./metric-steps.ts";
export { moveToNode } from "./move-to-node.ts";
export { type NodeLoad, NodeRepository, type NodeStatusEntry, type SetNodeStatus } from "./nodes.ts";
export { openStore, refuseNewerDatabase, type Store } from "./open-store.ts";
export type { OptionsChanges } from "./options-changes.ts";
export { PlatformCountRepository, type PlatformCounts } from "./platform-counts.ts";
export { ProcessRepository } from "./processes.ts";
export { type KnownSubject, type ProviderSignIn, type ProviderSubject, ProviderUserRepository } from "./provider-users.ts";
export {
  type EndReason,
  LISTED_AS,
  type NewSandbox,
  OCCUPYING_STATES,
  type PauseReason,
  type Sandbox,
  type SandboxChanges,
  type SandboxEntry,
  type SandboxState,
  type UnaskedEnd,
} from "./sandbox.ts";
export type { SandboxFilter, SandboxPage } from "./sandbox-lists.ts";
export { type LogWindow, SandboxLogRepository } from "./sandbox-logs.ts";
export { type SandboxMetric, SandboxMetricRepository } from "./sandbox-metrics.ts";
export type { ImageChange, SandboxTransition, TransitionReason } from "./sandbox-transition.ts";
export { type SandboxEventRecord, SandboxRepository, type SandboxRoute, type SandboxStart } from "./sandboxes.ts";
export { type SealedValue, type SecretReference, SecretRepository, type StoredSecret } from "./secrets.ts";
export { type NewSnapshot, type Snapshot, type SnapshotFilter, type SnapshotPage, SnapshotRepository } from "./snapshots.ts";
export { type AssignedTag, type TagAssignment, TagRepository } from "./tags.ts";
export { type TeamMetric, TeamMetricRepository } from "./team-metrics.ts";
export { type ListedTeam, type TeamContents, TeamRepository } from "./teams.ts";
export type { ClaimedTemplate, TemplateClaim } from "./template-claims.ts";
export { type ListedBuild, type ListedTemplate, type NewestFirstPage, TemplateListRepository } from "./template-lists.ts";
export { TemplateNetworkRepository } from "./template-network.ts";
export { type ChangedVisibility, TemplateVisibilityRepository, type VisibilityChange } from "./template-visibility.ts";
export {
  type Build,
  type BuildContext,
  type BuildImage,
  type BuildStart,
  type BuildStatus,
  DEFAULT_TAG,
  GLOBAL_NAMESPACE,
  type Template,
  type TemplateAlias,
  type TemplateKind,
  TemplateRepository,
} from "./templates.ts";
export { type User, UserRepository } from "./users.ts";
export type { NewVolume, Volume, VolumeMount, VolumeState } from "./volume.ts";
export { type OwnedVolume, type VolumeRemoval, VolumeRepository } from "./volumes.ts";
export type { DeliveryReport, DeliveryRepository, FailedDelivery } from "./webhooks/deliveries.ts";
export type { Delivery, NewWebhook, OwnedWebhook, Webhook } from "./webhooks/webhook.ts";
export { type WebhookChange, WebhookRepository } from "./webhooks/webhooks.ts";
