import { NOT_BUILT } from "./not-built.ts";
import type { Operation } from "./operation.ts";
import { connectSandbox } from "./routes/connect-sandbox.ts";
import { connectSandboxV1 } from "./routes/connect-sandbox-v1.ts";
import { createSandbox } from "./routes/create-sandbox.ts";
import { createSandboxV1 } from "./routes/create-sandbox-v1.ts";
import { createSnapshot } from "./routes/create-snapshot.ts";
import { deleteTemplate } from "./routes/delete-template.ts";
import { forkSandbox } from "./routes/fork-sandbox.ts";
import { getHealth } from "./routes/get-health.ts";
import { getSandbox } from "./routes/get-sandbox.ts";
import { killSandbox } from "./routes/kill-sandbox.ts";
import { listSandboxes } from "./routes/list-sandboxes.ts";
import { listSandboxesV1 } from "./routes/list-sandboxes-v1.ts";
import { listSnapshots } from "./routes/list-snapshots.ts";
import { listTeams } from "./routes/list-teams.ts";
import { listTemplates } from "./routes/list-templates.ts";
import { pauseSandbox } from "./routes/pause-sandbox.ts";
import { refreshSandbox } from "./routes/refresh-sandbox.ts";
import { resumeSandbox } from "./routes/resume-sandbox.ts";
import { setSandboxTimeout } from "./routes/set-sandbox-timeout.ts";

/** Everything that the public API has, in the order of the served document. */
export const OPERATIONS: readonly Operation[] = [
  createSandbox,
  connectSandbox,
  listSandboxes,
  getSandbox,
  killSandbox,
  pauseSandbox,
  forkSandbox,
  setSandboxTimeout,
  refreshSandbox,
  createSandboxV1,
  connectSandboxV1,
  resumeSandbox,
  listSandboxesV1,
  createSnapshot,
  listSnapshots,
  listTemplates,
  deleteTemplate,
  listTeams,
  getHealth,
  ...NOT_BUILT,
];
