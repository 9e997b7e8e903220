import type { Operation } from "./operation.ts";
import { createTeam } from "./routes/accounts/create-team.ts";
import { createUser } from "./routes/accounts/create-user.ts";
import { createUserAccessToken } from "./routes/accounts/create-user-token.ts";
import { deleteTeam } from "./routes/accounts/delete-team.ts";
import { deleteUser } from "./routes/accounts/delete-user.ts";
import { deleteUserAccessToken } from "./routes/accounts/delete-user-token.ts";
import { getAccount } from "./routes/accounts/get-account.ts";
import { getTeam } from "./routes/accounts/get-team.ts";
import { getUser } from "./routes/accounts/get-user.ts";
import { listAllTeams } from "./routes/accounts/list-all-teams.ts";
import { listAllUsers } from "./routes/accounts/list-all-users.ts";
import { listUserAccessTokens } from "./routes/accounts/list-user-tokens.ts";
import { updateTeam } from "./routes/accounts/update-team.ts";
import { updateUser } from "./routes/accounts/update-user.ts";
import { getPlatformStatus } from "./routes/admin/get-platform-status.ts";
import { getRunningCounts } from "./routes/admin/get-running-counts.ts";
import { killTeamSandboxes } from "./routes/admin/kill-team-sandboxes.ts";
import { suspendPlatform } from "./routes/admin/suspend-platform.ts";
import { exportAllAuditLines, exportAuditLines } from "./routes/audit/export-audit.ts";
import { listAllAuditLines, listAuditLines } from "./routes/audit/list-audit.ts";
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
import { getSandboxEgress } from "./routes/egress/get-sandbox-egress.ts";
import { getTeamEgress } from "./routes/egress/get-team-egress.ts";
import { listAllEvents, listEvents } from "./routes/events/list-events.ts";
import { streamAllEvents, streamEvents } from "./routes/events/stream-events.ts";
import { getHealth } from "./routes/get-health.ts";
import { createAccessToken } from "./routes/keys/create-access-token.ts";
import { createApiKey } from "./routes/keys/create-api-key.ts";
import { createTeamApiKey } from "./routes/keys/create-team-api-key.ts";
import { deleteAccessToken } from "./routes/keys/delete-access-token.ts";
import { deleteApiKey } from "./routes/keys/delete-api-key.ts";
import { deleteTeamApiKey } from "./routes/keys/delete-team-api-key.ts";
import { listAccessTokens } from "./routes/keys/list-access-tokens.ts";
import { listApiKeys } from "./routes/keys/list-api-keys.ts";
import { updateApiKey } from "./routes/keys/update-api-key.ts";
import { deleteTier } from "./routes/limits/delete-tier.ts";
import { getOwnLimits } from "./routes/limits/get-own-limits.ts";
import { getTeamLimits } from "./routes/limits/get-team-limits.ts";
import { listTiers } from "./routes/limits/list-tiers.ts";
import { putTier } from "./routes/limits/put-tier.ts";
import { setTeamLimits } from "./routes/limits/set-team-limits.ts";
import { createLink } from "./routes/links/create-link.ts";
import { listLinks } from "./routes/links/list-links.ts";
import { revokeLink } from "./routes/links/revoke-link.ts";
import { getSandboxLogs } from "./routes/logs/get-sandbox-logs.ts";
import { getSandboxLogsV1 } from "./routes/logs/get-sandbox-logs-v1.ts";
import { acceptInvitation } from "./routes/members/accept-invitation.ts";
import { createInvitation } from "./routes/members/create-invitation.ts";
import { deleteInvitation } from "./routes/members/delete-invitation.ts";
import { leaveTeam } from "./routes/members/leave-team.ts";
import { listInvitations } from "./routes/members/list-invitations.ts";
import { listTeamMembers } from "./routes/members/list-members.ts";
import { removeTeamMember } from "./routes/members/remove-member.ts";
import { setTeamMember } from "./routes/members/set-member.ts";
import { getSandboxMetrics } from "./routes/metrics/get-sandbox-metrics.ts";
import { getTeamMaxMetrics } from "./routes/metrics/get-team-max-metrics.ts";
import { getTeamMetrics } from "./routes/metrics/get-team-metrics.ts";
import { listSandboxMetrics } from "./routes/metrics/list-sandbox-metrics.ts";
import { getNode } from "./routes/nodes/get-node.ts";
import { listNodes } from "./routes/nodes/list-nodes.ts";
import { setNodeStatus } from "./routes/nodes/set-node-status.ts";
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
import { getTeamStanding } from "./routes/standing/get-team-standing.ts";
import { setTeamStanding } from "./routes/standing/set-team-standing.ts";
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
import { createVolume } from "./routes/volumes/create-volume.ts";
import { deleteVolume } from "./routes/volumes/delete-volume.ts";
import { getVolume } from "./routes/volumes/get-volume.ts";
import { listVolumes } from "./routes/volumes/list-volumes.ts";
import { createWebhook } from "./routes/webhooks/create-webhook.ts";
import { deleteWebhook } from "./routes/webhooks/delete-webhook.ts";
import { getWebhook } from "./routes/webhooks/get-webhook.ts";
import { listWebhookDeliveries } from "./routes/webhooks/list-webhook-deliveries.ts";
import { listWebhooks } from "./routes/webhooks/list-webhooks.ts";
import { renewWebhookSecret } from "./routes/webhooks/renew-webhook-secret.ts";
import { replayWebhook } from "./routes/webhooks/replay-webhook.ts";
import { testWebhook } from "./routes/webhooks/test-webhook.ts";
import { updateWebhook } from "./routes/webhooks/update-webhook.ts";

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
  getSandboxLogs,
  getSandboxLogsV1,
  getSandboxEgress,
  getSandboxMetrics,
  listSandboxMetrics,
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
  getTeamMetrics,
  getTeamEgress,
  getTeamMaxMetrics,
  getOwnLimits,
  listTeamMembers,
  setTeamMember,
  removeTeamMember,
  leaveTeam,
  listInvitations,
  createInvitation,
  deleteInvitation,
  acceptInvitation,
  updateTeam,
  getAccount,
  listApiKeys,
  createApiKey,
  updateApiKey,
  deleteApiKey,
  listAccessTokens,
  createAccessToken,
  deleteAccessToken,
  listAllTeams,
  createTeam,
  getTeam,
  deleteTeam,
  listAllUsers,
  createUser,
  getUser,
  updateUser,
  deleteUser,
  listUserAccessTokens,
  createUserAccessToken,
  deleteUserAccessToken,
  createTeamApiKey,
  deleteTeamApiKey,
  listSecrets,
  createSecret,
  getSecret,
  updateSecret,
  deleteSecret,
  listEvents,
  streamEvents,
  createWebhook,
  listWebhooks,
  getWebhook,
  updateWebhook,
  deleteWebhook,
  renewWebhookSecret,
  testWebhook,
  replayWebhook,
  listWebhookDeliveries,
  listAuditLines,
  exportAuditLines,
  listAllEvents,
  streamAllEvents,
  listAllAuditLines,
  exportAllAuditLines,
  listNodes,
  getNode,
  setNodeStatus,
  killTeamSandboxes,
  getRunningCounts,
  getPlatformStatus,
  suspendPlatform,
  listTiers,
  putTier,
  deleteTier,
  getTeamLimits,
  setTeamLimits,
  getTeamStanding,
  setTeamStanding,
  listVolumes,
  createVolume,
  getVolume,
  deleteVolume,
  getHealth,
];
