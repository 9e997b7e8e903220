export type { BuildEntry, BuildJob, BuildOutcome, BuildReason, BuildRequest, BuildRequestStep, NewBuild } from "./build.ts";
export { type BuildFile, BuildFileRepository } from "./build-files.ts";
export { type BuildLogLevel, type BuildLogLine, BuildLogRepository, type BuildLogWindow, LOG_LEVELS } from "./build-logs.ts";
export { type BuildRegistration, BuildRepository, type BuildStartRequest, type RegisteredBuild, type StartedBuild } from "./builds.ts";
export { isDatabaseAway } from "./database-away.ts";
export { IdempotencyRepository, type KeyRecord, type NewKeyRecord } from "./idempotency.ts";
export { type Credential, IdentityRepository, type KeyOwner, type Membership, type Team, type TokenUser } from "./identity.ts";
export type { Image, ImageKind, ImageState, NewImage } from "./image.ts";
export { ImageRepository } from "./images.ts";
export { KeyRepository, type ListedKey } from "./keys.ts";
export { LinkRepository, type StoredLink } from "./links.ts";
export { type NodeLoad, NodeRepository, type NodeStatusEntry, type SetNodeStatus } from "./nodes.ts";
export { openStore, refuseNewerDatabase, type Store } from "./open-store.ts";
export { ProcessRepository } from "./processes.ts";
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
export type { ImageChange, SandboxTransition, TransitionReason } from "./sandbox-transition.ts";
export { type SandboxEventRecord, SandboxRepository, type SandboxRoute, type SandboxStart } from "./sandboxes.ts";
export { type SealedValue, type SecretReference, SecretRepository, type StoredSecret } from "./secrets.ts";
export { type NewSnapshot, type Snapshot, type SnapshotFilter, type SnapshotPage, SnapshotRepository } from "./snapshots.ts";
export { type AssignedTag, type TagAssignment, TagRepository } from "./tags.ts";
export type { ClaimedTemplate, TemplateClaim } from "./template-claims.ts";
export { type ListedBuild, type ListedTemplate, type NewestFirstPage, TemplateListRepository } from "./template-lists.ts";
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
