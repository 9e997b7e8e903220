export { type Credential, IdentityRepository, type KeyOwner, type Membership, type Team } from "./identity.ts";
export { openStore, type Store } from "./open-store.ts";
export type { EndReason, NewSandbox, Sandbox, SandboxEntry, SandboxState } from "./sandbox.ts";
export {
  type SandboxFilter,
  type SandboxPage,
  SandboxRepository,
  type SandboxRoute,
  type SandboxStart,
  type SandboxTransition,
} from "./sandboxes.ts";
export {
  type Build,
  type BuildStatus,
  DEFAULT_TAG,
  GLOBAL_NAMESPACE,
  type ListedTemplate,
  type Template,
  type TemplateAlias,
  TemplateRepository,
} from "./templates.ts";
