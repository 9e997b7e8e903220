import type { Operation } from "./operation.ts";
import { getRunningCounts } from "./routes/admin/get-running-counts.ts";
import { killTeamSandboxes } from "./routes/admin/kill-team-sandboxes.ts";
import { cancelTeamBuilds } from "./routes/builds/cancel-team-builds.ts";
import { getBuildFileUpload } from "./routes/builds/get-build-file-upload.ts";
import { getBuildLogs } from "./routes/builds/get-build-logs.ts";
import { getBuildStatus } from "./routes/builds/get-build-status.ts";
import { rebuildDockerfile } from "./routes/builds/rebuild-dockerfile.ts";
import { requestBuild } from "./routes/builds/request-build.ts";
import { requestBuildV1 } from "./routes/builds/request-build-v1.ts";
import { requestBuildV2 } from "./routes/builds/request-build-v2.ts";
import { startBuild } from "./routes/builds/start-build.ts";
import { startBuildV1 } from "./routes/builds/start-build-v1.ts";
import { getHealth } from "./routes/get-health.ts";
import { createAccessToken } from "./routes/keys/create-access-token.ts";
import { createApiKey } from "./routes/keys/create-api-key.ts";
import { createTeamApiKey } from "./routes/keys/create-team-api-key.ts";
import { deleteAccessToken } from "./routes/keys/delete-access-token.ts";
import { deleteApiKey } from "./routes/keys/delete-api-key.ts";
import { deleteTeamApiKey } from "./routes/keys/delete-team-api-key.ts";
import { listApiKeys } from "./routes/keys/list-api-keys.ts";
import { updateApiKey } from "./routes/keys/update-api-key.ts";
import { createLink } from "./routes/links/create-link.ts";
import { listLinks } from "./routes/links/list-links.ts";
import { revokeLink } from "./routes/links/revoke-link.ts";
import { getNode } from "./routes/nodes/get-node.ts";
import { listNodes } from "./routes/nodes/list-nodes.ts";
import { setNodeStatus } from "./routes/nodes/set-node-status.ts";
import { NOT_BUILT } from "./routes/not-built.ts";
import { connectSandbox } from "./routes/sandboxes/connect-sandbox.ts";
import { connectSandboxV1 } from "./routes/sandboxes/connect-sandbox-v1.ts";
import { createSandbox } from "./routes/sandboxes/create-sandbox.ts";
import { createSandboxV1 } from "./routes/sandboxes/create-sandbox-v1.ts";
import { forkSandbox } from "./routes/sandboxes/fork-sandbox.ts";
import { getSandbox } from "./routes/sandboxes/get-sandbox.ts";
import { killSandbox } from "./routes/sandboxes/kill-sandbox.ts";
import { listSandboxes } from "./routes/sandboxes/list-sandboxes.ts";
import { listSandboxesV1 } from "./routes/sandboxes/list-sandboxes-v1.ts";
import { pauseSandbox } from "./routes/sandboxes/pause-sandbox.ts";
import { refreshSandbox } from "./routes/sandboxes/refresh-sandbox.ts";
import { resumeSandbox } from "./routes/sandboxes/resume-sandbox.ts";
import { setSandboxNetwork } from "./routes/sandboxes/set-sandbox-network.ts";
import { setSandboxTimeout } from "./routes/sandboxes/set-sandbox-timeout.ts";
import { createSecret } from "./routes/secrets/create-secret.ts";
import { deleteSecret } from "./routes/secrets/delete-secret.ts";
import { getSecret } from "./routes/secrets/get-secret.ts";
import { listSecrets } from "./routes/secrets/list-secrets.ts";
import { updateSecret } from "./routes/secrets/update-secret.ts";
import { createSnapshot } from "./routes/snapshots/create-snapshot.ts";
import { listSnapshots } from "./routes/snapshots/list-snapshots.ts";
import { listTeams } from "./routes/teams/list-teams.ts";
import { deleteTemplate } from "./routes/templates/delete-template.ts";
import { getTemplate } from "./routes/templates/get-template.ts";
import { getTemplateAlias } from "./routes/templates/get-template-alias.ts";
import { listDefaultTemplates } from "./routes/templates/list-default-templates.ts";
import { listTemplates, listTemplatesV2 } from "./routes/templates/list-templates.ts";
import { assignTags } from "./routes/templates/tags/assign-tags.ts";
import { countTags } from "./routes/templates/tags/count-tags.ts";
import { listTagAssignments } from "./routes/templates/tags/list-tag-assignments.ts";
import { listTagGroups } from "./routes/templates/tags/list-tag-groups.ts";
import { listTags } from "./routes/templates/tags/list-tags.ts";
import { removeTags } from "./routes/templates/tags/remove-tags.ts";
import { tagExists } from "./routes/templates/tags/tag-exists.ts";
import { updateTemplate, updateTemplateV1 } from "./routes/templates/update-template.ts";

/** All operations of the public API, in the order of the served document. */
export const OPERATIONS: readonly Operation[] = [
  createSandbox,
  connectSandbox,
  listSandboxes,
  getSandbox,
  killSandbox,
  pauseSandbox,
  forkSandbox,
  setSandboxTimeout,
  setSandboxNetwork,
  refreshSandbox,
  createLink,
  listLinks,
  revokeLink,
  createSandboxV1,
  connectSandboxV1,
  resumeSandbox,
  listSandboxesV1,
  createSnapshot,
  listSnapshots,
  listTemplatesV2,
  getTemplate,
  updateTemplate,
  deleteTemplate,
  requestBuild,
  getBuildFileUpload,
  startBuild,
  getBuildStatus,
  getBuildLogs,
  requestBuildV2,
  requestBuildV1,
  rebuildDockerfile,
  startBuildV1,
  cancelTeamBuilds,
  getTemplateAlias,
  listDefaultTemplates,
  assignTags,
  removeTags,
  listTags,
  countTags,
  tagExists,
  listTagGroups,
  listTagAssignments,
  listTemplates,
  updateTemplateV1,
  listTeams,
  listApiKeys,
  createApiKey,
  updateApiKey,
  deleteApiKey,
  createAccessToken,
  deleteAccessToken,
  createTeamApiKey,
  deleteTeamApiKey,
  listSecrets,
  createSecret,
  getSecret,
  updateSecret,
  deleteSecret,
  listNodes,
  getNode,
  setNodeStatus,
  killTeamSandboxes,
  getRunningCounts,
  getHealth,
  ...NOT_BUILT,
];
